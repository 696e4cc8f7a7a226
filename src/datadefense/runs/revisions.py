"""Revisions: which behaviour of the code a stored result was measured with.

A stored run is known by its configuration and by these numbers. Raise one by hand when code that
it stands for begins to give other figures; runs of the revision before are then run again.
"""

from collections.abc import Iterator, Mapping
from itertools import product

ENGINE = 1
"""Data, partition, schedule, training, evaluation, and the defaults of `Experiment`."""
ATTACKS: Mapping[str, int] = {"adaptive": 3}
DEFENSES: Mapping[str, int] = {"datadefense": 5, "datadefense-learned": 3}
"""By name; 1 where none is given."""


def revision(attack: str, defense: str) -> list[int]:
    """Return the numbers that matter to a run; the ablations change with what they are of."""
    base = "datadefense-learned" if defense.startswith("datadefense.studies") else defense
    return [ENGINE, ATTACKS.get(attack, 1), DEFENSES.get(base, 1)]


def revisions(attack: str, defense: str) -> Iterator[list[int]]:
    """Return the numbers of now, then all that may have been before.

    >>> list(revisions("adaptive", "fedavg"))
    [[1, 3, 1], [1, 2, 1], [1, 1, 1]]
    """
    for numbers in product(*(range(now, 0, -1) for now in revision(attack, defense))):
        yield list(numbers)
