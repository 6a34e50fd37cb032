"""The numbers of the paper's Tables 1 to 3 (Ståhlberg and Geffner), for comparison with ours.

Domains have the paper's names in lower case. In rows with the suffix `-l`, training used only
instances small enough for full expansion.
"""

from typing import NamedTuple


class PaperRow(NamedTuple):
    """The result of one method on the 100 test instances of one domain."""

    coverage: int
    total: int
    """The sum of plan lengths over the solved instances."""
    median: float
    mean: float


TEST_INSTANCES = 100
LIMITED = ("blocks", "gripper", "miconic", "reward", "visitall")
"""Domains with a second row, `-l`.

Both rows have an equal test set, so LAMA's totals count it twice.
"""

INSTANCES = {
    "blocks": ("2-14 blocks", "15-19 blocks", "20-50 blocks"),
    "childsnack": ("1-6 children", "7-12 children", "13-50 children"),
    "childsnack-af": ("1-10 children", "11-19 children", "20-119 children"),
    "delivery": (
        "2-5 grid, 1-5 packages",
        "6-9 grid, 1-7 packages",
        "10-25 grid, 6-10 packages",
    ),
    "gripper": ("1-19 balls", "20-29 balls", "30-129 balls"),
    "hiking": (
        "1-6 couples, 1-4 locations",
        "6-10 couples, 2-5 locations",
        "10-26 couples, 5-7 locations",
    ),
    "miconic": (
        "1-19 people, 2-20 floors",
        "20-29 people, 21-30 floors",
        "30-80 people, 31-81 floors",
    ),
    "reward": ("2-12 grid, 1-7 rewards", "13-15 grid, 8-13 rewards", "16-29 grid, 8-14 rewards"),
    "spanner": ("1-14 nuts", "15-24 nuts", "25-50 nuts"),
    "visitall": ("2-12 grid", "13-15 grid", "16-30 grid"),
}
"""Table 1: sizes of the training, validation and test instances."""

LAMA = {
    "blocks": PaperRow(100, 23250, 218.0, 232.5),
    "childsnack": PaperRow(24, 2361, 89.0, 98.4),
    "childsnack-af": PaperRow(65, 16965, 261.0, 261.0),
    "delivery": PaperRow(99, 27337, 276.0, 276.1),
    "gripper": PaperRow(100, 23800, 238.0, 238.0),
    "hiking": PaperRow(26, 2038, 77.5, 78.4),
    "miconic": PaperRow(100, 19556, 195.5, 195.6),
    "reward": PaperRow(99, 12054, 116.0, 121.8),
    "spanner": PaperRow(0, 0, 0.0, 0.0),
    "visitall": PaperRow(100, 53004, 475.0, 530.0),
}
"""Table 2: LAMA's first plan."""

LIFTED = {
    "blocks": PaperRow(100, 9672, 98.0, 96.7),
    "blocks-l": PaperRow(100, 9692, 97.0, 96.9),
    "childsnack": PaperRow(56, 4358, 69.0, 77.8),
    "childsnack-af": PaperRow(100, 23424, 211.5, 234.2),
    "delivery": PaperRow(12, 3506, 243.5, 292.2),
    "gripper": PaperRow(100, 23800, 238.0, 238.0),
    "gripper-l": PaperRow(100, 23800, 238.0, 238.0),
    "hiking": PaperRow(0, 0, 0.0, 0.0),
    "miconic": PaperRow(100, 15999, 159.0, 160.0),
    "miconic-l": PaperRow(100, 15870, 158.5, 158.7),
    "reward": PaperRow(58, 5564, 86.5, 95.9),
    "reward-l": PaperRow(85, 7941, 89.0, 93.4),
    "spanner": PaperRow(100, 9555, 94.0, 95.5),
    "visitall": PaperRow(100, 45329, 409.0, 453.3),
    "visitall-l": PaperRow(68, 26247, 340.0, 386.0),
}

PROPOSITIONAL = {
    "blocks": PaperRow(100, 10730, 100.0, 107.3),
    "blocks-l": PaperRow(100, 9802, 98.0, 98.0),
    "childsnack": PaperRow(100, 9263, 90.5, 92.6),
    "childsnack-af": PaperRow(100, 21150, 211.5, 211.5),
    "delivery": PaperRow(11, 1837, 137.0, 167.0),
    "gripper": PaperRow(100, 23988, 238.0, 239.9),
    "gripper-l": PaperRow(100, 23858, 239.0, 238.6),
    "hiking": PaperRow(0, 0, 0.0, 0.0),
    "miconic": PaperRow(100, 15837, 158.5, 158.4),
    "miconic-l": PaperRow(100, 15929, 159.0, 159.3),
    "reward": PaperRow(72, 6596, 87.5, 91.6),
    "reward-l": PaperRow(78, 7139, 89.0, 91.5),
    "spanner": PaperRow(100, 9555, 94.0, 95.5),
    "visitall": PaperRow(88, 34546, 363.0, 392.6),
    "visitall-l": PaperRow(87, 36119, 368.0, 415.2),
}

STATE = {
    "blocks": PaperRow(98, 10876, 112.0, 111.0),
    "blocks-l": PaperRow(78, 11456, 95.0, 146.9),
    "childsnack": PaperRow(59, 6309, 111.0, 106.9),
    "childsnack-af": PaperRow(53, 8240, 141.0, 155.5),
    "delivery": PaperRow(0, 0, 0.0, 0.0),
    "gripper": PaperRow(100, 24400, 238.0, 244.0),
    "gripper-l": PaperRow(100, 23950, 238.0, 239.5),
    "hiking": PaperRow(0, 0, 0.0, 0.0),
    "miconic": PaperRow(100, 17955, 180.5, 179.6),
    "miconic-l": PaperRow(0, 0, 0.0, 0.0),
    "reward": PaperRow(0, 0, 0.0, 0.0),
    "reward-l": PaperRow(26, 2566, 95.5, 98.7),
    "spanner": PaperRow(74, 6766, 90.0, 91.4),
    "visitall": PaperRow(49, 32018, 654.0, 653.4),
    "visitall-l": PaperRow(28, 13706, 483.0, 489.5),
}

METHODS = {"lifted": LIFTED, "propositional": PROPOSITIONAL, "state": STATE, "lama": LAMA}
"""Tables 3 and 2 by method: domain → row."""

TOTALS = {
    "lifted": PaperRow(1179, 224757, 136.0, 190.6),
    "propositional": PaperRow(1236, 226349, 136.5, 183.1),
    "state": PaperRow(765, 158242, 148.0, 206.9),
    "lama": PaperRow(1212, 312029, 213.5, 257.4),
}
"""The paper's last rows: totals over fifteen rows of 100 instances, `-l` rows included."""


def paper_row(domain: str, method: str) -> PaperRow | None:
    """Return the paper's row, or None. LAMA's row for `blocks-l` is that of `blocks`."""
    rows = METHODS.get(method, {})
    row = rows.get(domain)
    if row is None and method == "lama" and domain.removesuffix("-l") in LIMITED:
        return rows[domain.removesuffix("-l")]
    return row
