"""Small tasks with dead ends that only pairs of facts show, and with some that they do not show."""

# Along a corridor of one direction lie tools; each fastens one screw at its end, and is used up.
FASTEN = """(define (domain fasten) (:requirements :strips :typing) (:types place tool screw)
  (:predicates (next ?a ?b - place) (here ?p - place) (lies ?t - tool ?p - place) (held ?t - tool)
    (at ?s - screw ?p - place) (loose ?s - screw) (fast ?s - screw))
  (:action go :parameters (?a ?b - place) :precondition (and (here ?a) (next ?a ?b))
    :effect (and (here ?b) (not (here ?a))))
  (:action take :parameters (?t - tool ?p - place) :precondition (and (here ?p) (lies ?t ?p))
    :effect (and (held ?t) (not (lies ?t ?p))))
  (:action fasten :parameters (?t - tool ?s - screw ?p - place)
    :precondition (and (here ?p) (at ?s ?p) (loose ?s) (held ?t))
    :effect (and (fast ?s) (not (loose ?s)) (not (held ?t)))))"""

CORRIDOR = """(define (problem corridor) (:domain fasten)
  (:objects p1 p2 p3 p4 - place t1 t2 t3 t4 - tool s1 s2 s3 - screw)
  (:init (here p1) (next p1 p2) (next p2 p3) (next p3 p4) (lies t1 p2) (lies t2 p2) (lies t3 p3)
    (lies t4 p3) (at s1 p4) (at s2 p4) (at s3 p4) (loose s1) (loose s2) (loose s3))
  (:goal (and (fast s1) (fast s2) (fast s3))))"""

# Coins buy things on a market with stalls, between which one goes freely.
MARKET = """(define (domain market) (:requirements :strips :typing) (:types stall coin thing)
  (:predicates (way ?a ?b - stall) (here ?p - stall) (sells ?p - stall ?t - thing) (coin ?c - coin)
    (mine ?t - thing))
  (:action go :parameters (?a ?b - stall) :precondition (and (here ?a) (way ?a ?b))
    :effect (and (here ?b) (not (here ?a))))
  (:action buy :parameters (?p - stall ?c - coin ?t - thing)
    :precondition (and (here ?p) (sells ?p ?t) (coin ?c))
    :effect (and (mine ?t) (not (coin ?c)))))"""

THREE_THINGS = """(define (problem three-things) (:domain market)
  (:objects s1 s2 s3 - stall c1 c2 - coin x y z - thing)
  (:init (here s1) (way s1 s2) (way s2 s1) (way s2 s3) (way s3 s2) (sells s1 x) (sells s2 y)
    (sells s3 z) (coin c1) (coin c2)) (:goal (and (mine x) (mine y) (mine z))))"""

# Coins can also be put into a pocket, and taken out again. So it is no longer true that no action
# makes a coin, and for two coins and three things nothing is proven.
POCKET = MARKET.replace("(coin ?c - coin)", "(coin ?c - coin) (hidden ?c - coin)").replace(
    "(:action buy",
    """(:action hide :parameters (?c - coin) :precondition (coin ?c)
    :effect (and (hidden ?c) (not (coin ?c))))
  (:action show :parameters (?c - coin) :precondition (hidden ?c)
    :effect (and (coin ?c) (not (hidden ?c))))
  (:action buy""",
)

# A cleaner walks over tiles and waxes the one ahead or behind, which nobody walks on afterwards.
WAX = """(define (domain wax) (:requirements :strips :typing) (:types tile)
  (:predicates (north ?a ?b - tile) (beside ?a ?b - tile) (on ?t - tile) (dry ?t - tile)
    (waxed ?t - tile))
  (:action step :parameters (?a ?b - tile) :precondition (and (on ?a) (north ?a ?b) (dry ?b))
    :effect (and (on ?b) (dry ?a) (not (on ?a)) (not (dry ?b))))
  (:action back :parameters (?a ?b - tile) :precondition (and (on ?a) (north ?b ?a) (dry ?b))
    :effect (and (on ?b) (dry ?a) (not (on ?a)) (not (dry ?b))))
  (:action aside :parameters (?a ?b - tile) :precondition (and (on ?a) (beside ?a ?b) (dry ?b))
    :effect (and (on ?b) (dry ?a) (not (on ?a)) (not (dry ?b))))
  (:action wax-ahead :parameters (?a ?b - tile) :precondition (and (on ?a) (north ?a ?b) (dry ?b))
    :effect (and (waxed ?b) (not (dry ?b))))
  (:action wax-behind :parameters (?a ?b - tile) :precondition (and (on ?a) (north ?b ?a) (dry ?b))
    :effect (and (waxed ?b) (not (dry ?b)))))"""

# c1 c2
# b1 b2   one row above the other, and the cleaner on a1
# a1 a2
FLOOR = """(define (problem floor) (:domain wax) (:objects a1 a2 b1 b2 c1 c2 - tile)
  (:init (on a1) (dry a2) (dry b1) (dry b2) (dry c1) (dry c2)
    (north a1 b1) (north b1 c1) (north a2 b2) (north b2 c2)
    (beside a1 a2) (beside a2 a1) (beside b1 b2) (beside b2 b1) (beside c1 c2) (beside c2 c1))
  (:goal (and (waxed b1) (waxed b2) (waxed c1) (waxed c2))))"""

# A box is pushed, and never pulled.
PUSH = """(define (domain push) (:requirements :strips :typing) (:types cell box)
  (:predicates (line ?a ?b ?c - cell) (next ?a ?b - cell) (on ?c - cell) (in ?b - box ?c - cell)
    (free ?c - cell))
  (:action walk :parameters (?a ?b - cell) :precondition (and (on ?a) (next ?a ?b) (free ?b))
    :effect (and (on ?b) (not (on ?a)) (free ?a) (not (free ?b))))
  (:action push :parameters (?x - box ?a ?b ?c - cell)
    :precondition (and (on ?a) (line ?a ?b ?c) (in ?x ?b) (free ?c))
    :effect (and (on ?b) (not (on ?a)) (free ?a) (in ?x ?c) (not (in ?x ?b)) (not (free ?c)))))"""


def yard(width, height, walls, boxes, goals, start):
    """A problem of `push`; cells are named by column and row, as `b2`."""
    cells = {f"{chr(97 + x)}{y}" for x in range(width) for y in range(height)} - set(walls)

    def lines(length):
        for cell in sorted(cells):
            for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                way = [
                    f"{chr(ord(cell[0]) + i * dx)}{int(cell[1]) + i * dy}" for i in range(length)
                ]
                if cells.issuperset(way):
                    yield " ".join(way)

    free = cells - {start, *boxes.values()}
    init = [f"(on {start})", *(f"(in {x} {c})" for x, c in boxes.items())]
    init += [f"(free {c})" for c in sorted(free)]
    init += [f"(next {way})" for way in lines(2)] + [f"(line {way})" for way in lines(3)]
    goal = " ".join(f"(in {x} {c})" for x, c in goals.items())
    return f"""(define (problem yard) (:domain push)
      (:objects {" ".join(sorted(cells))} - cell {" ".join(boxes)} - box)
      (:init {" ".join(init)}) (:goal (and {goal})))"""


YARD = yard(5, 3, ["e1"], {"x": "c0", "y": "a2"}, {"x": "c0", "y": "a2"}, "a1")

TASKS = {"fasten": (FASTEN, CORRIDOR), "wax": (WAX, FLOOR), "push": (PUSH, YARD)}
