; Towers of blocks on a table, and one arm that holds at most one block.
(define (domain blocks)
  (:requirements :strips)

  (:predicates
    (on ?x ?y)       ; x lies directly on y
    (on-table ?x)
    (clear ?x)       ; nothing lies on x, and x is not held
    (holding ?x)
    (arm-empty))

  (:action pickup
    :parameters (?x)
    :precondition (and (arm-empty) (clear ?x) (on-table ?x))
    :effect (and
      (holding ?x)
      (not (arm-empty)) (not (clear ?x)) (not (on-table ?x))))

  (:action putdown
    :parameters (?x)
    :precondition (holding ?x)
    :effect (and
      (arm-empty) (clear ?x) (on-table ?x)
      (not (holding ?x))))

  (:action stack
    :parameters (?x ?y)
    :precondition (and (holding ?x) (clear ?y))
    :effect (and
      (arm-empty) (clear ?x) (on ?x ?y)
      (not (holding ?x)) (not (clear ?y))))

  (:action unstack
    :parameters (?x ?y)
    :precondition (and (arm-empty) (clear ?x) (on ?x ?y))
    :effect (and
      (holding ?x) (clear ?y)
      (not (arm-empty)) (not (clear ?x)) (not (on ?x ?y))))
)
