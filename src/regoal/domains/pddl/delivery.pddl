; A truck that holds one package at a time brings packages to cells of a grid.
(define (domain delivery)
  (:requirements :strips :typing)
  (:types
    cell locatable - object
    package truck - locatable)

  (:predicates
    (adjacent ?x - cell ?y - cell)
    (at ?l - locatable ?x - cell)
    (carrying ?t - truck ?p - package)
    (empty ?t - truck))

  (:action pick-package
    :parameters (?t - truck ?p - package ?x - cell)
    :precondition (and (at ?t ?x) (at ?p ?x) (empty ?t))
    :effect (and (carrying ?t ?p) (not (at ?p ?x)) (not (empty ?t))))

  (:action drop-package
    :parameters (?t - truck ?p - package ?x - cell)
    :precondition (and (at ?t ?x) (carrying ?t ?p))
    :effect (and (at ?p ?x) (empty ?t) (not (carrying ?t ?p))))

  (:action move
    :parameters (?t - truck ?from - cell ?to - cell)
    :precondition (and (at ?t ?from) (adjacent ?from ?to))
    :effect (and (at ?t ?to) (not (at ?t ?from))))
)
