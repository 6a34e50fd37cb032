; A robot has to visit marked places of a grid.
(define (domain grid-visit-all)
  (:requirements :strips :typing)
  (:types place - object)

  (:predicates
    (connected ?x - place ?y - place)
    (at-robot ?x - place)
    (visited ?x - place))

  (:action move
    :parameters (?from - place ?to - place)
    :precondition (and (at-robot ?from) (connected ?from ?to))
    :effect (and (at-robot ?to) (visited ?to) (not (at-robot ?from))))
)
