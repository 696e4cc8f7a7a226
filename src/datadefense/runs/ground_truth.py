"""Ground truth: which examples of a defense set are known to be poisoned, which no defense is told.

An experiment writes into the provenance of each example where it came from; a figure may look at
that afterwards, to say how good a detector was.
"""

from collections.abc import Iterable

from datadefense.defense_sets.folder import POISONED


def is_poisoned(provenance: str) -> bool:
    """Say whether it is known of an example of this origin that it is poisoned."""
    return provenance == POISONED


def poisoned_ids(examples: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return the ids of the examples that are poisoned, from pairs of id and provenance."""
    return frozenset(example_id for example_id, origin in examples if is_poisoned(origin))
