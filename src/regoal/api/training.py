"""Make problems and learn from them, from Python."""

from collections.abc import Callable, Iterator
from pathlib import Path

from regoal.api.arguments import Problems, as_paths
from regoal.config import LAPTOP, PRESETS, TrainConfig
from regoal.domains.splits import write_split
from regoal.planning.load import load_domain
from regoal.records.run_record import recorded_number
from regoal.runs.news import Progress
from regoal.system.threads import free_threads


def generate(domain: str, out: str | Path, *, split: str = "train", seed: int = 0) -> list[Path]:
    """Write `domain.pddl` and the problems of a built-in domain to a folder; return the problems.

    `split` is `train`, `validation` or `test`, with the paper's sizes; some domains have more.
    Equal seeds give equal files. Raises `UsageError` if the domain or split is unknown, or if the
    folder holds other PDDL files.

    Examples:
        >>> import regoal, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     problems = regoal.generate("gripper", folder, split="validation")
        >>> len(problems), problems[0].name
        (10, 'p001.pddl')
    """
    return write_split(domain, split, Path(out), seed)


def train(
    domain: str | Path,
    problems: Problems,
    *,
    out: str | Path,
    validation: Problems | None = None,
    config: TrainConfig = LAPTOP,
    budget_s: float | None = None,
    resume: bool = False,
    tell: Callable[[str], None] = lambda note: None,
) -> Iterator[Progress]:
    """Learn a policy from small problems; yield the progress after each episode.

    `problems` is a folder or a list of files. So is `validation`: larger problems, which choose the
    best policy; without it the largest of `problems` are held out. `out` is the run folder. It has
    the best policy so far, which `load_policy(out)` loads. So you may leave the loop at any time;
    `resume` goes on from there. The training also ends by itself, at the latest after `budget_s`
    seconds, in which the body of your loop counts. `tell` is called with each message of
    `regoal train`.

    Raises `UsageError` for settings, files or a folder that will not do, `PddlError` and
    `UnsupportedPddlError` for PDDL, all before the first episode; later `RegoalError` if the loss
    is no longer finite. Needs PyTorch, the extra `regoal[train]`.

    Examples:
        >>> import regoal, tempfile
        >>> from regoal.config import TrainConfig
        >>> config = TrainConfig(episodes=3, layers=2, updates=1, validation_steps=3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     problems = regoal.generate("gripper", f"{folder}/problems")
        ...     domain = problems[0].with_name("domain.pddl")
        ...     training = regoal.train(domain, problems[:2], out=f"{folder}/run", config=config)
        ...     [progress.episode for progress in training]
        [1, 2, 3]
    """
    # `import regoal` and `generate` need no PyTorch.
    from regoal.runs.settings import RunSettings
    from regoal.runs.training_run import iterate_training

    def tell_text(news: str | Progress) -> None:
        if isinstance(news, str):
            tell(news)

    settings = RunSettings(
        domain=Path(domain),
        problems=as_paths(problems),
        validation=None if validation is None else as_paths(validation),
        out=Path(out),
        config=config,
        preset=next((name for name, of in PRESETS.items() if of == config), "own"),
        name=load_domain(Path(domain)).name,
        budget_s=budget_s,
        resume=resume,
        threads=(recorded_number(Path(out), "threads") if resume else 0) or free_threads(),
        device="auto",
    )
    return iterate_training(settings, tell_text)
