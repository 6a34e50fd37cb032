"""Texts that the fuzz starts from: small domains, problems, plans, sweep files and run records."""

COURIER = """; parcels are carried along roads
(define (domain courier)
  (:requirements :strips :typing :negative-preconditions :equality)
  (:types place - object parcel courier - thing thing - object)
  (:constants depot - place)
  (:predicates (at ?t - thing ?p - place) (road ?a ?b - place) (held ?x - parcel) (busy)
    (shut ?p - place))
  (:action go :parameters (?c - courier ?a ?b - place)
    :precondition (and (at ?c ?a) (road ?a ?b) (not (shut ?b)) (not (= ?a ?b)))
    :effect (and (at ?c ?b) (not (at ?c ?a))))
  (:action take :parameters (?c - courier ?x - parcel ?p - place)
    :precondition (and (at ?c ?p) (at ?x ?p) (not (busy)))
    :effect (and (held ?x) (busy) (not (at ?x ?p))))
  (:action drop :parameters (?c - courier ?x - parcel ?p - place)
    :precondition (and (at ?c ?p) (held ?x))
    :effect (and (at ?x ?p) (not (held ?x)) (not (busy)))))
"""
COURIER_TWO = """(define (problem two) (:domain courier)
  (:objects k - courier x y - parcel m n - place)
  (:init (at k depot) (at x m) (at y depot) (road depot m) (road m depot) (road m n) (road n m))
  (:goal (and (at x n) (not (held y)) (at y m))))
"""
COURIER_PLAN = """(take k y depot)
(go k depot m)
(drop k y m)
(take k x m)
(go k m n)
(drop k x n)
; cost = 6 (unit cost)
"""

LAMPS = """(define (domain lamps)
  (:requirements :adl :derived-predicates)
  (:types lamp bulb - thing)
  (:predicates (lit ?t - thing) (next ?a ?b - thing) (bright) (all-lit))
  (:derived (bright) (exists (?t - thing) (lit ?t)))
  (:derived (all-lit) (forall (?t - thing) (lit ?t)))
  (:action light :parameters (?t - thing) :precondition (not (lit ?t))
    :effect (and (lit ?t) (forall (?o - thing) (when (next ?t ?o) (lit ?o)))))
  (:action reset :parameters () :precondition (bright)
    :effect (forall (?t - thing) (not (lit ?t))))
  (:action swap :parameters (?a ?b - (either lamp bulb))
    :precondition (or (and (lit ?a) (not (lit ?b))) (and (next ?a ?b) (imply (lit ?b) (bright))))
    :effect (and (when (lit ?a) (not (lit ?a))) (lit ?b))))
"""
LAMPS_THREE = """(define (problem three) (:domain lamps)
  (:objects a b - lamp c - bulb)
  (:init (next a b) (next b c) (not (lit a)))
  (:goal (and (lit c) (not (lit a)))))
"""
LAMPS_PLAN = "0.000: (LIGHT b) [1]\n; a comment\n"

MARKET = """(define (domain market)
  (:requirements :strips :typing :action-costs)
  (:types place)
  (:predicates (here ?p - place) (way ?a ?b - place) (sold))
  (:functions (total-cost) - number (price ?a ?b - place) - number)
  (:action walk :parameters (?a ?b - place) :precondition (and (here ?a) (way ?a ?b))
    :effect (and (here ?b) (not (here ?a)) (increase (total-cost) (price ?a ?b))))
  (:action sell :parameters () :effect (and (sold) (increase (total-cost) 3))))
"""
MARKET_ONE = """(define (problem one) (:domain market) (:objects p q r - place)
  (:init (here p) (way p q) (way q r) (= (price p q) 2) (= (price q r) 1.5) (= (total-cost) 0))
  (:goal (and (here r) (sold))) (:metric minimize (total-cost)))
"""
MARKET_PLAN = "(walk p q)\r\n(walk q r)\r\n(sell)\r\n; cost = 6.5 (general cost)\r\n"

STACKS = """(define (domain stacks) (:requirements :strips)
  (:predicates (on ?x ?y) (table ?x) (clear ?x))
  (:action stack :parameters (?x ?y)
    :precondition (and (table ?x) (clear ?x) (clear ?y) (not (= ?x ?y)))
    :effect (and (on ?x ?y) (not (table ?x)) (not (clear ?y))))
  (:action unstack :parameters (?x ?y) :precondition (and (on ?x ?y) (clear ?x))
    :effect (and (table ?x) (clear ?y) (not (on ?x ?y)))))
"""
STACKS_FOUR = """(define (problem four) (:domain stacks) (:objects a b c d)
  (:init (on a b) (table b) (table c) (table d) (clear a) (clear c) (clear d))
  (:goal (and (on b c) (on c d))))
"""
STACKS_PLAN = "(unstack a b)\n(stack c d)\n(stack b c)\n; cost = 3 (unit cost)\n"

CASES = {
    "courier": (COURIER, COURIER_TWO, COURIER_PLAN),
    "lamps": (LAMPS, LAMPS_THREE, LAMPS_PLAN),
    "market": (MARKET, MARKET_ONE, MARKET_PLAN),
    "stacks": (STACKS, STACKS_FOUR, STACKS_PLAN),
}
"""A domain, one problem of it and one valid plan."""

SWEEP = """out = "runs/small"
domains = ["blocks", "gripper"]
hindsight = ["lifted", "propositional", "state"]
seeds = [0, 1, 2]
preset = "laptop"
budget_minutes = 20.5
instances_seed = 3

[overrides]
layers = 20
"temperature.episodes" = 50
learn_dead_ends = true
"""

CONFIG = """{
  "domain": "blocks",
  "preset": "laptop",
  "hindsight": "lifted",
  "seed": 0,
  "layers": 3,
  "threads": 1,
  "budget_s": null,
  "environment": {"torch": "2.6", "kernel": true}
}
"""
EPISODES = """{"episode": 1, "solved": 0, "goal_size": 1.5, "trajectory_length": 7, "loss": 0.4}
{"episode": 2, "solved": 1, "goal_size": 2.0, "trajectory_length": 6.5, "loss": null}
"""
VALIDATION = """{"episode": 2, "solved": 1, "problems": 2, "plan_length": 9, "kept": true}
"""
RESULTS = """{"problem": "p1", "domain": "blocks", "method": "lifted", "outcome": "solved", \
"plan_length": 6, "plan_cost": 6.0, "seconds": 0.1, "steps": 6}
{"problem": "p2", "domain": "blocks", "method": "lifted", "outcome": "step_limit", \
"plan_length": null, "plan_cost": null, "seconds": 1e1, "steps": 1000}
"""
DONE = '{"finished": true, "domain": "blocks", "hindsight": "lifted", "seed": 0}\n'

RUN_FILES = {
    "config.json": CONFIG,
    "episodes.jsonl": EPISODES,
    "validation.jsonl": VALIDATION,
    "results.jsonl": RESULTS,
    "done.json": DONE,
}
