"""`python -m regoal` is the command `regoal`."""

from regoal.cli import main

main()
