"""A real SLURM of one machine, for trying clusters: `python -m reproduction.slurm_node COMMAND...`.

It needs Debian's packages `slurm-wlm` and `munge`, and root. Its daemons listen on the loopback
interface alone, keep everything in one temporary folder, and end with this process. There is no
accounting and there are no control groups, so that it also starts in a container. The command runs
with `SLURM_CONF` set, so that `sbatch`, `squeue` and `submitit` find it.
"""

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "sinfo")
START_S = 30
"""Seconds that the node may take until it is ready."""
END_S = 10
"""Seconds that a daemon may take to end."""
CONFIG = """\
ClusterName=regoal
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={control}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CommunicationParameters=NoInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1
ReturnToService=2
MpiDefault=none
SlurmdParameters=config_overrides
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class SlurmError(Exception):
    """SLURM cannot start on this machine; the message says why."""


@contextlib.contextmanager
def slurm_node(folder: Path, *, nodes: int = 1, cpus: int = 2) -> Iterator[dict[str, str]]:
    """Start SLURM with its files in `folder`; yields the environment in which its commands run.

    `nodes` daemons on this machine stand for as many machines with `cpus` processors each. They
    need not be there: nobody is bound to one. Raises `SlurmError` if it cannot start.
    """
    _check_machine()
    for name in ("state", *(f"spool-n{node}" for node in range(nodes))):
        (folder / name).mkdir(parents=True)
    environment = {**os.environ, "SLURM_CONF": str(_write_config(folder, nodes, cpus))}
    with contextlib.ExitStack() as daemons:
        for name, command in _daemons(folder, nodes).items():
            daemons.enter_context(_daemon(command, folder / f"{name}.out", environment))
        _wait_until_idle(folder, nodes, environment)
        yield environment


def _check_machine() -> None:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    missing = [name for name in PROGRAMS if not shutil.which(name, path=path)]
    if missing:
        raise SlurmError(
            f"{', '.join(missing)} cannot be found: install Debian's packages slurm-wlm and munge"
        )
    if os.geteuid() != 0:
        raise SlurmError("its daemons need root to run jobs")


def _write_config(folder: Path, nodes: int, cpus: int) -> Path:
    host = socket.gethostname()
    control, *ports = _free_ports(1 + nodes)
    lines = [
        f"NodeName=n{node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} "
        f"State=UNKNOWN"
        for node, port in enumerate(ports)
    ]
    config = folder / "slurm.conf"
    text = CONFIG.format(host=host, control=control, folder=folder, nodes="\n".join(lines))
    config.write_text(text, encoding="utf-8")
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    return config


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for free in sockets:
            free.bind(("127.0.0.1", 0))
        return [free.getsockname()[1] for free in sockets]


def _daemons(folder: Path, nodes: int) -> dict[str, list[str]]:
    """The commands by the names of their logs, in the order in which they start."""
    munge = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "log", "pid", "seed")]
    return {
        "munged": ["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *munge],
        "slurmctld": ["slurmctld", "-D", "-i"],
        **{f"slurmd-n{node}": ["slurmd", "-D", "-N", f"n{node}"] for node in range(nodes)},
    }


@contextlib.contextmanager
def _daemon(command: list[str], log: Path, environment: dict[str, str]) -> Iterator[None]:
    """Run a daemon in the foreground until this context ends."""
    path = f"{environment.get('PATH', '')}:/usr/sbin"
    program = shutil.which(command[0], path=path) or command[0]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_idle(folder: Path, nodes: int, environment: dict[str, str]) -> None:
    end = time.monotonic() + START_S
    states: list[str] = []
    while time.monotonic() < end:
        asked = subprocess.run(
            ["sinfo", "--noheader", "--Node", "--format=%T"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        states = asked.stdout.split()
        if states == ["idle"] * nodes:
            return
        time.sleep(0.2)
    raise SlurmError(f"its nodes are {states or 'not there'}; its logs are in {folder}")


def main() -> None:
    """Run a command while SLURM runs; ends with the command's exit code."""
    command = sys.argv[1:]
    if not command or command[0] in ("-h", "--help"):
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        try:
            with slurm_node(Path(folder)) as environment:
                code = subprocess.run(command, env=environment, check=False).returncode
        except SlurmError as error:
            sys.exit(f"SLURM cannot start: {error}.")
    sys.exit(code)


if __name__ == "__main__":
    main()
