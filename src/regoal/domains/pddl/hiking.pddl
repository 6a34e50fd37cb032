; Couples walk a chain of places together. A leg ends where a tent has been put up; tents and
; people travel by car, from any place to any other.
(define (domain hiking)
  (:requirements :strips :typing :negative-preconditions :equality)
  (:types car tent person couple place - object)

  (:predicates
    (at_car ?c - car ?p - place)
    (at_tent ?t - tent ?p - place)
    (at_person ?x - person ?p - place)
    (up ?t - tent)
    (down ?t - tent)
    (partners ?c - couple ?x - person ?y - person)
    (walked ?c - couple ?p - place)       ; the couple's walk has come as far as p
    (next ?p - place ?q - place))         ; the leg from p leads to q

  (:action put_down
    :parameters (?x - person ?p - place ?t - tent)
    :precondition (and (at_person ?x ?p) (at_tent ?t ?p) (up ?t))
    :effect (and (down ?t) (not (up ?t))))

  (:action put_up
    :parameters (?x - person ?p - place ?t - tent)
    :precondition (and (at_person ?x ?p) (at_tent ?t ?p) (down ?t))
    :effect (and (up ?t) (not (down ?t))))

  (:action drive
    :parameters (?x - person ?from - place ?to - place ?c - car)
    :precondition (and (at_person ?x ?from) (at_car ?c ?from) (not (= ?from ?to)))
    :effect (and
      (at_person ?x ?to) (not (at_person ?x ?from))
      (at_car ?c ?to) (not (at_car ?c ?from))))

  (:action drive_passenger
    :parameters (?x - person ?from - place ?to - place ?c - car ?y - person)
    :precondition (and
      (at_person ?x ?from) (at_person ?y ?from) (not (= ?x ?y))
      (at_car ?c ?from) (not (= ?from ?to)))
    :effect (and
      (at_person ?x ?to) (not (at_person ?x ?from))
      (at_person ?y ?to) (not (at_person ?y ?from))
      (at_car ?c ?to) (not (at_car ?c ?from))))

  (:action drive_tent
    :parameters (?x - person ?from - place ?to - place ?c - car ?t - tent)
    :precondition (and
      (at_person ?x ?from) (at_car ?c ?from)
      (at_tent ?t ?from) (down ?t) (not (= ?from ?to)))
    :effect (and
      (at_person ?x ?to) (not (at_person ?x ?from))
      (at_car ?c ?to) (not (at_car ?c ?from))
      (at_tent ?t ?to) (not (at_tent ?t ?from))))

  (:action drive_tent_passenger
    :parameters (?x - person ?from - place ?to - place ?c - car ?t - tent ?y - person)
    :precondition (and
      (at_person ?x ?from) (at_person ?y ?from) (not (= ?x ?y))
      (at_car ?c ?from) (at_tent ?t ?from) (down ?t) (not (= ?from ?to)))
    :effect (and
      (at_person ?x ?to) (not (at_person ?x ?from))
      (at_person ?y ?to) (not (at_person ?y ?from))
      (at_car ?c ?to) (not (at_car ?c ?from))
      (at_tent ?t ?to) (not (at_tent ?t ?from))))

  (:action walk_together
    :parameters (?t - tent ?to - place ?x - person ?from - place ?y - person ?c - couple)
    :precondition (and
      (partners ?c ?x ?y) (not (= ?x ?y))
      (at_person ?x ?from) (at_person ?y ?from)
      (walked ?c ?from) (next ?from ?to)
      (at_tent ?t ?to) (up ?t))
    :effect (and
      (at_person ?x ?to) (not (at_person ?x ?from))
      (at_person ?y ?to) (not (at_person ?y ?from))
      (walked ?c ?to) (not (walked ?c ?from))))
)
