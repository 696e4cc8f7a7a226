"""What a detector says of the server's own examples: how suspect each is, and which are marked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from datadefense.core.defense_set import DefenseSet

DIGITS = 4
"""Significant digits of a suspicion that is kept."""


@dataclass(frozen=True, slots=True)
class DetectorRecord:
    """A detector's opinion of the defense set in one round.

    Args:
        suspicion: of each example by its id; the higher, the more suspect. What is not a finite
            number is None.
        marked: ids of the examples that are taken for poisoned.
    """

    suspicion: Mapping[str, float | None]
    marked: Sequence[str]

    @classmethod
    def of(
        cls,
        defense_set: DefenseSet,
        suspicion: Float[Tensor, " examples"],
        marked: Bool[Tensor, " examples"],
    ) -> "DetectorRecord":
        """Return the record of a set whose examples have this suspicion and these marks."""
        numbers = [float(f"{value:.{DIGITS}g}") for value in suspicion.tolist()]
        places = marked.nonzero().flatten().tolist()
        return cls(
            dict(zip(defense_set.ids, numbers, strict=True)),
            tuple(defense_set.ids[place] for place in places),
        )


def plain_detector(record: DetectorRecord) -> DetectorRecord:
    """Return a record that is fit to be stored, whatever kind of numbers and texts it was made of.

    >>> plain_detector(DetectorRecord({"x1": float("nan"), "x2": 0.5}, ["x2"]))
    DetectorRecord(suspicion={'x1': None, 'x2': 0.5}, marked=('x2',))
    """
    suspicion = {
        str(example_id): None if value is None or not math.isfinite(value) else float(value)
        for example_id, value in record.suspicion.items()
    }
    return DetectorRecord(suspicion, tuple(str(example_id) for example_id in record.marked))
