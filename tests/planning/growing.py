"""The delete relaxation by its definition: apply every rule until nothing changes."""

from itertools import product

from regoal.planning.goals import Atom
from regoal.planning.pddl.model import Junction, Literal


class Growing:
    """The atoms that can become true, and the atoms that can become false, from one state."""

    def __init__(self, task, state):
        self.task, self.content = task, task.domain.text.content
        self.true = set(state.atoms)
        self.false = {
            Atom(name, objects)
            for name, of in self.content.symbols.predicates.items()
            for objects in product(task.objects, repeat=len(of))
        } - self.true
        size = -1
        while size < len(self.true) + len(self.false):
            size = len(self.true) + len(self.false)
            self._derive()
            self._act()

    def reaches(self, goal):
        return all(self.holds(Literal(*atom, positive), {}) for atom, positive in goal.literals())

    def holds(self, formula, binding):
        if isinstance(formula, Literal):
            return self._holds_literal(formula, binding)
        if isinstance(formula, Junction):
            parts = [self.holds(part, binding) for part in formula.parts]
            return all(parts) if formula.connective == "and" else any(parts)
        parts = [self.holds(formula.body, b) for b in self._bindings(formula.variables, binding)]
        return all(parts) if formula.quantifier == "forall" else any(parts)

    def _holds_literal(self, literal, binding):
        atom = literal.ground(binding)
        if atom.predicate == "=":
            return (atom.objects[0] == atom.objects[1]) == literal.positive
        if literal.positive:
            return atom in self.true
        return atom.predicate in self.content.symbols.derived or atom in self.false

    def _bindings(self, variables, binding):
        types = self.task.types_of
        ranges = [
            [o for o in types if not {*types[o], "object"}.isdisjoint(v.types)] for v in variables
        ]
        names = [v.name for v in variables]
        return [binding | dict(zip(names, of, strict=True)) for of in product(*ranges)]

    def _derive(self):
        for rule in self.content.derived:
            for binding in self._bindings(rule.parameters, {}):
                if self.holds(rule.body, binding):
                    self.true.add(Atom(rule.predicate, tuple(binding.values())))

    def _act(self):
        for action, effect in ((a, e) for a in self.content.actions for e in a.effects):
            for binding in self._bindings(action.parameters + effect.variables, {}):
                if self.holds(action.precondition, binding) and self.holds(
                    effect.condition, binding
                ):
                    for literal in effect.literals:
                        facts = self.true if literal.positive else self.false
                        facts.add(literal.ground(binding))
