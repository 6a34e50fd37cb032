; Collect all rewards on a grid; blocked cells cannot be entered.
(define (domain reward-strips)
  (:requirements :strips :typing)
  (:types cell - object)

  (:predicates
    (adjacent ?x - cell ?y - cell)
    (unblocked ?x - cell)
    (at ?x - cell)
    (reward ?x - cell)      ; a reward lies on x
    (picked ?x - cell))     ; the reward of x has been picked

  (:action move
    :parameters (?from - cell ?to - cell)
    :precondition (and (at ?from) (adjacent ?from ?to) (unblocked ?to))
    :effect (and (at ?to) (not (at ?from))))

  (:action pick-reward
    :parameters (?x - cell)
    :precondition (and (at ?x) (reward ?x))
    :effect (and (picked ?x) (not (reward ?x))))
)
