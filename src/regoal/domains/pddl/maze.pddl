; Find the way from one cell of a maze to another.
(define (domain maze)
  (:requirements :strips :typing)
  (:types cell - object)

  (:predicates
    (connected ?x - cell ?y - cell)   ; no wall between x and y
    (at ?x - cell))

  (:action move
    :parameters (?from - cell ?to - cell)
    :precondition (and (at ?from) (connected ?from ?to))
    :effect (and (at ?to) (not (at ?from))))
)
