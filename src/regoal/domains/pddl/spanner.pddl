; A man walks a one-way path and tightens nuts at its end. Every spanner works once, and those he
; does not pick up on the way are lost.
(define (domain spanner)
  (:requirements :strips :typing)
  (:types
    location locatable - object
    man nut spanner - locatable)

  (:predicates
    (link ?x - location ?y - location)
    (at ?l - locatable ?x - location)
    (carrying ?m - man ?s - spanner)
    (useable ?s - spanner)
    (loose ?n - nut)
    (tightened ?n - nut))

  (:action walk
    :parameters (?from - location ?to - location ?m - man)
    :precondition (and (at ?m ?from) (link ?from ?to))
    :effect (and (at ?m ?to) (not (at ?m ?from))))

  (:action pickup_spanner
    :parameters (?x - location ?s - spanner ?m - man)
    :precondition (and (at ?m ?x) (at ?s ?x))
    :effect (and (carrying ?m ?s) (not (at ?s ?x))))

  (:action tighten_nut
    :parameters (?x - location ?s - spanner ?m - man ?n - nut)
    :precondition (and (at ?m ?x) (at ?n ?x) (loose ?n) (carrying ?m ?s) (useable ?s))
    :effect (and (tightened ?n) (not (loose ?n)) (not (useable ?s))))
)
