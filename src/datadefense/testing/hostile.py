"""Rounds that attackers would like: as large as honest ones, with what has stalled a rule before.

Less than half of the clients are attackers, and less than half of the examples are theirs.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.core.round import Round
from datadefense.testing.toy import toy_round

CLIENTS, ATTACKERS = 20, 9
Rows = Float[Tensor, "attackers dim"]


def honest_round() -> Round:
    """Return the honest round that the others are compared with: 100 examples a client."""
    return replace(toy_round(CLIENTS), num_examples=torch.full((CLIENTS,), 100))


def hostile_rounds() -> Iterator[tuple[str, Round]]:
    """Yield rounds that differ from the honest one in their first rows, and what these are."""
    honest = honest_round()
    for name, make in ROWS.items():
        updates = honest.updates.clone()
        updates[:ATTACKERS] = make(updates[:ATTACKERS])
        yield name, replace(honest, updates=updates)
    for far in (1e3, 1e30):
        for claimed in (400, 415, 430):
            updates = honest.updates.clone()
            updates[0], updates[1] = far, 0.0
            counts = honest.num_examples.clone()
            counts[0], counts[1] = 1, claimed
            what = f"one update of {far:g} and one of zeros that claims {claimed} examples"
            yield what, replace(honest, updates=updates, num_examples=counts)


def _noise(rows: Rows, size: float) -> Rows:
    return size * rows.roll(1, dims=1)


def _nested(rows: Rows) -> Rows:
    """Each is nearer to the next than to the one before, by four digits."""
    made = rows[0].repeat(len(rows), 1)
    for level in range(1, len(rows)):
        part = slice(level * 60, level * 60 + 60)
        made[level:, part] = rows[level:, part] * 10.0 ** (-4 * level)
    return made


def _last_value_differs(rows: Rows) -> Rows:
    made = rows[0].repeat(len(rows), 1)
    made[:, -1] += 1e-6 * torch.arange(len(rows))
    return made


ROWS: dict[str, Callable[[Rows], Rows]] = {
    "zeros": torch.zeros_like,
    "denormal numbers": lambda rows: torch.full_like(rows, 1e-44),
    "tiny": lambda rows: 1e-30 * rows,
    "huge, all ways": lambda rows: 1e32 * rows,
    "huge, one way": lambda rows: torch.full_like(rows, -1e30),
    "the greatest": lambda rows: torch.full_like(rows, 3e38),
    "of every size": lambda rows: rows * torch.logspace(-30, 30, len(rows))[:, None],
    "clones": lambda rows: rows[0].repeat(len(rows), 1),
    "clones in their first values": _last_value_differs,
    "near-clones": lambda rows: rows[0] + _noise(rows, 1e-6),
    "near-clones within near-clones": _nested,
    "near-clones, huge": lambda rows: 1e30 * (rows[0] + _noise(rows, 1e-6)),
    "the same values in another order": lambda rows: torch.stack(
        [rows[0].roll(place) for place in range(len(rows))]
    ),
    "opposite to each other": lambda rows: (
        rows[0] * torch.tensor([(-1.0) ** place for place in range(len(rows))]).unsqueeze(1)
    ),
}
