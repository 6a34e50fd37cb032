"""Why a condition does not hold in a state, in words."""

from regoal.planning.plain.problem import Expression
from regoal.planning.plain.state import DECIDES, Binding, State, cases, ground

MOST_SHOWN = 120
"""Most characters of a quantified condition that are shown."""


def faults(state: State, condition: Expression, binding: Binding, wanted: bool = True) -> list[str]:
    """What would have to change for a condition to be as wanted; nothing if it is.

    A conjunction gives a text for each part that fails, a disjunction one text for all.
    """
    if state.holds(condition, binding) is wanted:
        return []
    word = condition[0] if condition else "and"
    if word == "not":
        return faults(state, condition[1], binding, not wanted)
    if word == "imply":
        return faults(state, ["or", ["not", condition[1]], condition[2]], binding, wanted)
    if word in ("and", "or"):
        return _junction(state, condition, binding, wanted)
    if word in DECIDES:
        return [_quantified(state, condition, binding, wanted)]
    return [_atom(ground(condition, binding), wanted)]


def _junction(state: State, condition: Expression, binding: Binding, wanted: bool) -> list[str]:
    """One text for each part that is not as wanted, or a single one if one part is enough."""
    parts = [faults(state, part, binding, wanted) for part in condition[1:]]
    if DECIDES[condition[0]] is wanted:
        choices = dict.fromkeys("; ".join(part) for part in parts)
        return [", or ".join(choices) or f"({condition[0]}) can never be {str(wanted).lower()}"]
    return list(dict.fromkeys(fault for part in parts for fault in part))


def _atom(fact: tuple[str, ...], wanted: bool) -> str:
    if fact[0] == "=":
        return f"{fact[1]} and {fact[2]} must {'be the same' if wanted else 'differ'}"
    return f"({' '.join(fact)}) {'does not hold' if wanted else 'holds but must not'}"


def _quantified(state: State, condition: Expression, binding: Binding, wanted: bool) -> str:
    """The objects that break a condition about all objects, or that no objects fulfil one."""
    text = _shown(condition, binding)
    text = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]} ..."
    if DECIDES[condition[0]] is wanted:
        return f"no object fulfils {text}" if wanted else f"{text} holds but must not"
    body, inner = next(
        (body, inner)
        for body, inner in cases(condition, binding)
        if state.holds(body, inner) is not wanted
    )
    objects = ", ".join(f"{name} = {inner[name]}" for name in condition[1])
    why = "; ".join(faults(state, body, inner, wanted))
    return f"{text} {'fails' if wanted else 'holds but must not'} for {objects}: {why}"


def _shown(expression: Expression, binding: Binding) -> str:
    """An expression as PDDL, with objects for its free variables and without types."""
    if isinstance(expression, str):
        return binding.get(expression, expression)
    if expression[:1] in (["forall"], ["exists"]):
        quantifier, ranges, body = expression
        inner = {name: value for name, value in binding.items() if name not in ranges}
        return f"({quantifier} ({' '.join(ranges)}) {_shown(body, inner)})"
    return f"({' '.join(_shown(part, binding) for part in expression)})"
