"""Lamps that are switched on for good: every policy reaches every goal."""

from pathlib import Path

DOMAIN = """
(define (domain lamps)
  (:requirements :strips :typing)
  (:types lamp)
  (:predicates (dark ?l - lamp) (lit ?l - lamp))
  (:action switch :parameters (?l - lamp) :precondition (dark ?l)
    :effect (and (lit ?l) (not (dark ?l)))))
"""


def problem(lamps):
    names = [f"l{i}" for i in range(lamps)]
    dark, lit = (" ".join(f"({p} {name})" for name in names) for p in ("dark", "lit"))
    return (
        f"(define (problem p) (:domain lamps) (:objects {' '.join(names)} - lamp)\n"
        f"  (:init {dark}) (:goal (and {lit})))\n"
    )


def write_lamps(folder, **sizes):
    """Write the domain, and problems with so many lamps into folders by name."""
    for name, lamps in sizes.items():
        to = folder / Path(*name.split("_"))
        to.mkdir(parents=True)
        for size in lamps:
            (to / f"p{size}.pddl").write_text(problem(size))
    (folder / "domain.pddl").write_text(DOMAIN)
