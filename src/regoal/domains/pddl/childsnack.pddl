; Make sandwiches in the kitchen, put them on trays, serve them to children at tables. Children
; with an allergy need a sandwich whose bread and content are both free of gluten.
(define (domain child-snack)
  (:requirements :strips :typing :negative-preconditions :equality)
  (:types child bread-portion content-portion sandwich tray place - object)
  (:constants kitchen - place)

  (:predicates
    (at_kitchen_bread ?b - bread-portion)
    (at_kitchen_content ?c - content-portion)
    (at_kitchen_sandwich ?s - sandwich)
    (no_gluten_bread ?b - bread-portion)
    (no_gluten_content ?c - content-portion)
    (no_gluten_sandwich ?s - sandwich)
    (notexist ?s - sandwich)              ; s is still to be made
    (ontray ?s - sandwich ?t - tray)
    (at ?t - tray ?p - place)
    (waiting ?c - child ?p - place)
    (allergic_gluten ?c - child)
    (not_allergic_gluten ?c - child)
    (served ?c - child))

  (:action make_sandwich_no_gluten
    :parameters (?s - sandwich ?b - bread-portion ?c - content-portion)
    :precondition (and
      (notexist ?s)
      (at_kitchen_bread ?b) (no_gluten_bread ?b)
      (at_kitchen_content ?c) (no_gluten_content ?c))
    :effect (and
      (at_kitchen_sandwich ?s) (no_gluten_sandwich ?s)
      (not (notexist ?s)) (not (at_kitchen_bread ?b)) (not (at_kitchen_content ?c))))

  (:action make_sandwich
    :parameters (?s - sandwich ?b - bread-portion ?c - content-portion)
    :precondition (and (notexist ?s) (at_kitchen_bread ?b) (at_kitchen_content ?c))
    :effect (and
      (at_kitchen_sandwich ?s)
      (not (notexist ?s)) (not (at_kitchen_bread ?b)) (not (at_kitchen_content ?c))))

  (:action put_on_tray
    :parameters (?s - sandwich ?t - tray)
    :precondition (and (at_kitchen_sandwich ?s) (at ?t kitchen))
    :effect (and (ontray ?s ?t) (not (at_kitchen_sandwich ?s))))

  (:action serve_sandwich_no_gluten
    :parameters (?s - sandwich ?c - child ?t - tray ?p - place)
    :precondition (and
      (allergic_gluten ?c) (waiting ?c ?p)
      (at ?t ?p) (ontray ?s ?t) (no_gluten_sandwich ?s))
    :effect (and (served ?c) (not (ontray ?s ?t))))

  (:action serve_sandwich
    :parameters (?s - sandwich ?c - child ?t - tray ?p - place)
    :precondition (and
      (not_allergic_gluten ?c) (waiting ?c ?p)
      (at ?t ?p) (ontray ?s ?t))
    :effect (and (served ?c) (not (ontray ?s ?t))))

  (:action move_tray
    :parameters (?t - tray ?from - place ?to - place)
    :precondition (and (at ?t ?from) (not (= ?from ?to)))
    :effect (and (at ?t ?to) (not (at ?t ?from))))
)
