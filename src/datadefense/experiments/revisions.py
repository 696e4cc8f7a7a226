"""Revisions: which behaviour of the code a stored result was measured with.

A stored run is known by its configuration and by these numbers. Raise one by hand when code that
it stands for begins to give other figures; runs of the revision before are then run again.
"""

from collections.abc import Mapping

ENGINE = 1
"""Data, partition, schedule, training, evaluation, and the defaults of `Experiment`."""
ATTACKS: Mapping[str, int] = {"adaptive": 2}
DEFENSES: Mapping[str, int] = {"datadefense": 2}
"""By name; 1 where none is given."""


def revision(attack: str, defense: str) -> list[int]:
    """Return the numbers that matter to a run."""
    return [ENGINE, ATTACKS.get(attack, 1), DEFENSES.get(defense, 1)]
