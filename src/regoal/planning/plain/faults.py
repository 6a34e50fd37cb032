"""Explain in words why a condition does not hold in a state."""

from regoal.planning.plain.problem import Expression
from regoal.planning.plain.state import DECIDES, Binding, State, ground, list_cases

MOST_SHOWN = 120
"""Most characters of a quantified condition that are shown."""


def find_faults(
    state: State, condition: Expression, binding: Binding, wanted: bool = True
) -> list[str]:
    """Return what must change so that a condition is as wanted, or nothing if it is already.

    A conjunction gives a text for each part that fails. A disjunction gives one text for all.
    """
    if state.holds(condition, binding) is wanted:
        return []
    word = condition[0] if condition else "and"
    if word == "not":
        return find_faults(state, condition[1], binding, not wanted)
    if word == "imply":
        return find_faults(state, ["or", ["not", condition[1]], condition[2]], binding, wanted)
    if word in ("and", "or"):
        return _explain_junction(state, condition, binding, wanted)
    if word in DECIDES:
        return [_explain_quantified(state, condition, binding, wanted)]
    return [_explain_atom(ground(condition, binding), wanted)]


def _explain_junction(
    state: State, condition: Expression, binding: Binding, wanted: bool
) -> list[str]:
    """Explain each part that is not as wanted, in a single text if one part is enough."""
    parts = [find_faults(state, part, binding, wanted) for part in condition[1:]]
    if DECIDES[condition[0]] is wanted:
        choices = dict.fromkeys("; ".join(part) for part in parts)
        return [", or ".join(choices) or f"({condition[0]}) can never be {str(wanted).lower()}"]
    return list(dict.fromkeys(fault for part in parts for fault in part))


def _explain_atom(fact: tuple[str, ...], wanted: bool) -> str:
    if fact[0] == "=":
        return f"{fact[1]} and {fact[2]} must {'be the same' if wanted else 'differ'}"
    return f"({' '.join(fact)}) {'does not hold' if wanted else 'holds but must not'}"


def _explain_quantified(state: State, condition: Expression, binding: Binding, wanted: bool) -> str:
    """Name the objects that violate a universal condition, or say that no object fulfils one."""
    text = _show(condition, binding)
    text = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]} ..."
    if DECIDES[condition[0]] is wanted:
        return f"no object fulfils {text}" if wanted else f"{text} holds but must not"
    body, inner = next(
        (body, inner)
        for body, inner in list_cases(condition, binding)
        if state.holds(body, inner) is not wanted
    )
    objects = ", ".join(f"{name} = {inner[name]}" for name in condition[1])
    why = "; ".join(find_faults(state, body, inner, wanted))
    return f"{text} {'fails' if wanted else 'holds but must not'} for {objects}: {why}"


def _show(expression: Expression, binding: Binding) -> str:
    """Write an expression as PDDL, with objects for its free variables and without types."""
    if isinstance(expression, str):
        return binding.get(expression, expression)
    if expression[:1] in (["forall"], ["exists"]):
        quantifier, ranges, body = expression
        inner = {name: value for name, value in binding.items() if name not in ranges}
        return f"({quantifier} ({' '.join(ranges)}) {_show(body, inner)})"
    return f"({' '.join(_show(part, binding) for part in expression)})"
