"""Parts of a new defense set: clean examples, others beside them, marks, and nothing twice."""

from collections.abc import Sequence

import torch
from jaxtyping import Int64
from torch import Tensor

from datadefense.core.content import content_keys
from datadefense.core.examples import Examples
from datadefense.core.settings import check_float
from datadefense.defense_sets.folder import CLEAN, DefenseSetSource
from datadefense.tasks.base import TaskData

SIZE, SHARE = 500, 0.2
"""The paper's defense set: 500 examples, a fifth poisoned and a fifth known to be clean."""


def join(
    clean: Examples,
    others: Examples,
    origin: tuple[str, ...],
    *,
    known: int | None,
    trusted: str,
    order: Int64[Tensor, " examples"],
) -> DefenseSetSource:
    """Return both in this order, with the first ``known`` of the clean ones marked."""
    both = clean.join(others)
    marked = min(round(SHARE * len(both)), len(clean)) if known is None else known
    check_float("known-clean", marked, maximum=len(clean))
    provenance = (CLEAN,) * len(clean) + origin
    note = f"trusted as a part of {trusted}"
    return DefenseSetSource(
        both.inputs[order],
        both.labels[order],
        order < marked,
        provenance=tuple(provenance[row] for row in order.tolist()),
        notes=tuple(note if row < marked else "" for row in order.tolist()),
    )


def fresh(examples: Examples, others: Sequence[Tensor], data: TaskData | None = None) -> Examples:
    """Return examples as a folder keeps them, each once, without those that ``others`` have."""
    stored = examples.inputs if data is None else data.as_stored(examples.inputs)
    rows = fresh_rows(stored, others)
    return Examples(stored[rows], examples.labels[rows])


def fresh_rows(inputs: Tensor, others: Sequence[Tensor]) -> Int64[Tensor, " rows"]:
    """Return the first row of each content that ``others`` have not."""
    places: dict[bytes, int] = {}
    for row, key in enumerate(content_keys(inputs)):
        places.setdefault(key, row)
    for other in others:
        for key in content_keys(other):
            places.pop(key, None)
    return torch.tensor(list(places.values()), dtype=torch.int64)
