"""Problems of Unified Planning as PDDL files, and plans back as plans of Unified Planning.

Unified Planning's own writer makes the files. It gives many things other names, so every plan is
read back by the names that the writer gave.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unified_planning.io import PDDLWriter
from unified_planning.model import Problem, ProblemKind
from unified_planning.plans import ActionInstance, SequentialPlan

from regoal.errors import UnsupportedPddlError, UsageError
from regoal.planning.plans import Step
from regoal.system.files import write_text_atomically

KIND = {
    "problem_class": ("ACTION_BASED",),
    "typing": ("FLAT_TYPING", "HIERARCHICAL_TYPING"),
    "conditions_kind": (
        "NEGATIVE_CONDITIONS",
        "DISJUNCTIVE_CONDITIONS",
        "EQUALITIES",
        "EXISTENTIAL_CONDITIONS",
        "UNIVERSAL_CONDITIONS",
    ),
    "effects_kind": (
        "CONDITIONAL_EFFECTS",
        "FORALL_EFFECTS",
        "STATIC_FLUENTS_IN_BOOLEAN_ASSIGNMENTS",
        "FLUENTS_IN_BOOLEAN_ASSIGNMENTS",
    ),
    "quality_metrics": ("ACTIONS_COST", "PLAN_LENGTH"),
    "actions_cost_kind": (
        "STATIC_FLUENTS_IN_ACTIONS_COST",
        "INT_NUMBERS_IN_ACTIONS_COST",
        "REAL_NUMBERS_IN_ACTIONS_COST",
    ),
}
"""The features of problems that PDDL as regoal reads it has, by their group."""


def supported_kind() -> ProblemKind:
    """Return the kind of the problems that regoal reads; version 2 is Unified Planning 1.1's."""
    kind = ProblemKind(version=2)
    for group, features in KIND.items():
        for feature in features:
            getattr(kind, f"set_{group}")(feature)
    return kind


class _InOrder(set[Any]):
    """A set that is listed by name, so that one problem gives one text."""

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(super().__iter__(), key=lambda item: str(item.name)))


@dataclass(frozen=True)
class Translation:
    """A problem of Unified Planning and its two PDDL files."""

    problem: Problem
    domain: Path
    """The domain file."""
    path: Path
    """The problem file."""
    writer: PDDLWriter
    """It knows the PDDL names of everything in the problem."""

    def plan_of(self, steps: Sequence[Step]) -> SequentialPlan:
        """Return a plan of the PDDL problem as a plan of the original one."""
        named, environment = self.writer.get_item_named, self.problem.environment
        objects = environment.expression_manager.ObjectExp
        return SequentialPlan(
            [
                ActionInstance(named(step.name), tuple(objects(named(o)) for o in step.objects))
                for step in steps
            ],
            environment,
        )


def write_problem(problem: Problem, folder: Path, *, untyped: bool = False) -> Translation:
    """Write `domain.pddl` and `problem.pddl` into a new folder.

    With `untyped`, the problem's only type becomes `object`, see `has_one_type`. Raises
    `UnsupportedPddlError` if the library cannot write the problem.
    """
    domain_text, text, writer = write_texts(problem, untyped=untyped)
    folder.mkdir(parents=True)
    domain, path = folder / "domain.pddl", folder / "problem.pddl"
    write_text_atomically(domain, domain_text)
    write_text_atomically(path, text)
    return Translation(problem, domain, path, writer)


def write_texts(problem: Problem, *, untyped: bool = False) -> tuple[str, str, PDDLWriter]:
    """Return the texts of both files, and the writer, which knows the names in them.

    Takes and raises what `write_problem` does.
    """
    names = {problem.user_types[0]: "object"} if untyped else {}
    with _blame_problem(problem):
        writer = _make_writer(problem, names)
        return writer.get_domain(), writer.get_problem(), writer


def has_one_type(problem: Problem) -> bool:
    """Return whether all objects have one type other than `object`, which then says nothing.

    Unified Planning asks for a type. Many PDDL domains do without.
    """
    return len(problem.user_types) == 1 and problem.user_types[0].name != "object"


def write_problems(
    sets: Sequence[Sequence[Problem]], folder: Path
) -> tuple[Path, list[tuple[Path, ...]]]:
    """Write sets of problems of one domain: the domain file, and the files of each set in order.

    Everything that belongs to the domain has one name in all files. Costs are left out, as training
    minimises steps. Raises `UsageError` if a problem has other fluents or actions than the first,
    and `UnsupportedPddlError` for what PDDL as regoal reads it does not have.
    """
    plain = [[_without_costs(problem) for problem in problems] for problems in sets]
    common = _make_common_problem([problem for problems in plain for problem in problems])
    folder.mkdir(parents=True)
    domain = folder / "domain.pddl"
    with _blame_problem(common):
        writer = _make_writer(common, {})
        write_text_atomically(domain, writer.get_domain())
    shared = dict(writer.otn_renamings)
    files = []
    for number, problems in enumerate(plain):
        paths = [folder / f"set{number}" / f"p{i:03}.pddl" for i in range(1, len(problems) + 1)]
        for path, problem in zip(paths, problems, strict=True):
            path.parent.mkdir(exist_ok=True)
            with _blame_problem(problem):
                write_text_atomically(path, _make_writer(problem, shared).get_problem())
        files.append(tuple(paths))
    return domain, files


@contextmanager
def _blame_problem(problem: Problem) -> Iterator[None]:
    """Turn any failure of the library's writer into an `UnsupportedPddlError`."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise UnsupportedPddlError(
            f"Unified Planning cannot write the problem {problem.name} as PDDL: "
            f"{error or type(error).__name__}"
        ) from error


def _make_writer(problem: Problem, names: Mapping[Any, str]) -> PDDLWriter:
    """Make a writer that knows these names, and lists the domain's constants by name."""
    first, writer = (PDDLWriter(problem, rewrite_bool_assignments=True) for _ in range(2))
    for one in (first, writer):
        one.otn_renamings.update(names)
        one.nto_renamings.update({name: item for item, name in names.items()})
    first.get_domain()  # finds the constants: the objects that actions mention
    writer.domain_objects = {of: _InOrder(found) for of, found in first.domain_objects.items()}
    return writer


def _without_costs(problem: Problem) -> Problem:
    """Return a copy without metrics. Raises `UnsupportedPddlError` for an unsupported problem."""
    unsupported = problem.kind.features - supported_kind().features
    if unsupported:
        raise UnsupportedPddlError(
            f"the problem {problem.name} has features that regoal does not support: "
            f"{', '.join(sorted(unsupported))}"
        )
    copy = problem.clone()
    copy.clear_quality_metrics()
    return copy


def _make_common_problem(problems: Sequence[Problem]) -> Problem:
    """Return a problem with the domain of all these, and with every type that one of them has."""
    common = problems[0].clone()
    for number, problem in enumerate(problems[1:], start=2):
        for what in ("fluents", "actions"):
            theirs, ours = getattr(problem, what), getattr(common, what)
            differing = sorted({x.name for x in theirs if x not in ours})
            differing += sorted({x.name for x in ours if x not in theirs})
            if differing:
                raise UsageError(
                    f"problem {number} ({problem.name}) has other {what} than the first "
                    f"({', '.join(dict.fromkeys(differing))}); give problems of one domain and "
                    f"one environment."
                )
        for of in problem.user_types:
            if of not in common.user_types:
                common.add_object(f"an object of type {of.name}", of)  # adds the type
    return common
