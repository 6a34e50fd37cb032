"""The commands that make one run of a sweep, and whether it still needs them."""

import json
import os
import shlex
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from regoal.errors import UsageError
from regoal.records.json_lines import JsonObject, read_json
from regoal.records.run_record import CONFIG, DONE, RESULTS, load_run
from regoal.sweeps.given import copy_problems
from regoal.sweeps.options import Value
from regoal.sweeps.sweep_file import RunSetting, Sweep
from regoal.system.units import number_text


def finished(sweep: Sweep, setting: RunSetting) -> bool:
    """Whether a run has been trained and tested, with the policy that it has now.

    Raises `UsageError` if its folder holds a finished run with other settings.
    """
    marker = sweep.folder(setting) / DONE
    if not marker.is_file():
        return False
    done = read_json(marker)
    if done != done_record(sweep, setting):
        raise UsageError(
            f"{marker.parent} holds a run with other settings than the sweep file gives. "
            f"Choose another `out` or move that folder away."
        )
    return not is_outdated(marker.parent)


def is_outdated(folder: Path) -> bool:
    """Whether a run went on after its test, and found a better policy."""
    return (folder / CONFIG).is_file() and load_run(folder).of_another_policy


def generate_arguments(sweep: Sweep, domain: str, split: str, folder: Path) -> list[str]:
    """Arguments of the command that makes the problems of one split."""
    seed = str(sweep.instances_seed)
    return ["generate", domain, "--split", split, "--out", str(folder), "--seed", seed]


def training_arguments(sweep: Sweep, setting: RunSetting) -> list[str]:
    """Arguments of the command that trains one run, or goes on with it."""
    domain = setting.domain
    train, validation = (str(sweep.instances(domain, x)) for x in ("train", "validation"))
    words = ["train", f"{train}/domain.pddl", "--problems", train]
    words += ["--validation", validation] if "validation" in sweep.splits(domain) else []
    words += ["--hindsight", setting.hindsight, "--seed", str(setting.seed)]
    words += ["--name", domain, "--preset", setting.preset]
    words += ["--budget", f"{number_text(float(setting.budget_minutes))}m"]
    words += [word for item in sorted(setting.overrides.items()) for word in option_words(*item)]
    return [*words, "--out", str(sweep.folder(setting)), "--resume"]


def testing_arguments(sweep: Sweep, setting: RunSetting) -> list[str]:
    """Arguments of the command that tests it; the test of an earlier policy is repeated."""
    folder, test = sweep.folder(setting), str(sweep.instances(setting.domain, "test"))
    words = ["evaluate", str(folder), "--problems", test, "--out", str(folder / RESULTS)]
    words += [word for item in sorted((sweep.test or {}).items()) for word in option_words(*item)]
    return words if is_outdated(folder) else [*words, "--resume"]


Step = Callable[[Sweep, RunSetting], list[str]]


def steps_of(sweep: Sweep, setting: RunSetting) -> list[Step]:
    """List the steps that make one run, in order; a step may need the policy of the one before."""
    is_tested = "test" in sweep.splits(setting.domain)
    return [training_arguments, testing_arguments] if is_tested else [training_arguments]


def copy_given_problems(sweep: Sweep) -> None:
    """Copy the PDDL files that the sweep file names to where the runs look for them.

    A split that is there is taken as it is. Raises `UsageError` if files are missing.
    """
    for name, given in sweep.given.items():
        for split in sweep.splits(name):
            folder = sweep.instances(name, split)
            if folder.is_dir():
                continue
            unfinished = folder.with_name(f".{split}.{os.getpid()}.tmp")
            copy_problems(given, split, unfinished)
            give_final_name(unfinished, folder)


def give_final_name(unfinished: Path, folder: Path) -> None:
    """Rename a whole set of problems: half of one would be taken for all of it."""
    try:
        unfinished.replace(folder)
    except OSError:
        if not folder.is_dir():
            raise
        shutil.rmtree(unfinished)  # another sweep was quicker, with the same set


def option_words(name: str, value: Value) -> list[str]:
    """Return the words of an option on the command line."""
    name = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    return [f"--{name}", str(value)]


def _shell(program: Iterable[str], arguments: Iterable[str]) -> str:
    return shlex.join([*program, *arguments])


def done_record(sweep: Sweep, setting: RunSetting) -> JsonObject:
    """Make the record that marks a run of this sweep as finished."""
    record: JsonObject = {"finished": True, **asdict(setting)}
    record |= {"instances_seed": sweep.instances_seed}
    given = sweep.given.get(setting.domain)
    record |= {"pddl": given.digest} if given else {}
    record |= {"test": sweep.test or False} if sweep.test != {} else {}
    return {key: value for key, value in record.items() if (key, value) != ("variant", "")}


def print_commands(sweep: Sweep, *, program: Sequence[str] = ("regoal",)) -> list[str]:
    """Shell lines for a cluster: comments, the generation of instances, then one line a run.

    The lines of one part do not depend on each other. Finished runs are left out. PDDL files that
    the sweep file names are copied by this call. Raises `UsageError` if one is missing.
    """
    copy_given_problems(sweep)
    waiting = [setting for setting in sweep.settings if not finished(sweep, setting)]
    domains = dict.fromkeys(setting.domain for setting in waiting)
    lines = ["# first, once:"]
    for domain in domains:
        for split in sweep.splits(domain) if domain not in sweep.given else ():
            folder = sweep.instances(domain, split)
            if not folder.is_dir():
                unfinished = folder.with_name(f".{split}.tmp")
                making = generate_arguments(sweep, domain, split, unfinished)
                moving = ("mv", str(unfinished), str(folder))
                lines.append(f"{_shell(program, making)} && {shlex.join(moving)}")
    lines.append("# then, in any order:")
    for setting in waiting:
        steps = [_shell(program, step(sweep, setting)) for step in steps_of(sweep, setting)]
        done = shlex.quote(json.dumps(done_record(sweep, setting)))
        mark = f"printf '%s\\n' {done} > {shlex.quote(str(sweep.folder(setting) / DONE))}"
        lines.append(" && ".join([*steps, mark]))
    return lines
