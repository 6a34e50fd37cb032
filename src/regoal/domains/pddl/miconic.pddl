; A lift that reaches any floor in one step; boarding and leaving are actions of their own.
(define (domain miconic)
  (:requirements :strips :typing)
  (:types passenger floor - object)

  (:predicates
    (origin ?p - passenger ?f - floor)    ; p waits on f
    (destin ?p - passenger ?f - floor)    ; p wants to go to f
    (boarded ?p - passenger)
    (served ?p - passenger)
    (above ?low - floor ?high - floor)    ; high lies somewhere above low
    (lift-at ?f - floor))

  (:action board
    :parameters (?f - floor ?p - passenger)
    :precondition (and (lift-at ?f) (origin ?p ?f))
    :effect (and (boarded ?p) (not (origin ?p ?f))))

  (:action depart
    :parameters (?f - floor ?p - passenger)
    :precondition (and (lift-at ?f) (destin ?p ?f) (boarded ?p))
    :effect (and (served ?p) (not (boarded ?p))))

  (:action up
    :parameters (?from - floor ?to - floor)
    :precondition (and (lift-at ?from) (above ?from ?to))
    :effect (and (lift-at ?to) (not (lift-at ?from))))

  (:action down
    :parameters (?from - floor ?to - floor)
    :precondition (and (lift-at ?from) (above ?to ?from))
    :effect (and (lift-at ?to) (not (lift-at ?from))))
)
