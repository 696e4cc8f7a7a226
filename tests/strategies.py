"""Hypothesis strategies: rounds whose numbers lie on a grid, so that float32 sums are exact."""

import torch
from hypothesis import strategies as st

from datadefense import Round


@st.composite
def matrices(draw, min_clients=1, max_clients=12, min_dim=1, max_dim=6):
    clients = draw(st.integers(min_clients, max_clients))
    dim = draw(st.integers(min_dim, max_dim))
    cell = st.integers(-40, 40)
    rows = draw(
        st.lists(st.lists(cell, min_size=dim, max_size=dim), min_size=clients, max_size=clients)
    )
    return torch.tensor(rows, dtype=torch.float32) / 8


@st.composite
def scattered(draw, least=1, most=12):
    """Rows without ties: Gaussian, some of them around a common direction."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    clients, dim = draw(st.integers(least, most)), draw(st.integers(2, 9))
    together = draw(st.integers(0, clients))
    rows = torch.randn(clients, dim, generator=generator)
    rows[:together] = rows[0] + 0.3 * rows[:together]
    return rows


@st.composite
def rounds(draw, min_clients=1, max_clients=12):
    updates = draw(matrices(min_clients, max_clients))
    counts = draw(st.lists(st.integers(1, 50), min_size=len(updates), max_size=len(updates)))
    return as_round(updates, counts)


def as_round(updates, counts=None, index=1):
    updates = torch.as_tensor(updates)
    return Round(
        index=index,
        global_params=torch.linspace(-1, 1, updates.shape[1], dtype=updates.dtype),
        updates=updates,
        num_examples=torch.tensor(counts or [1] * len(updates)),
        client_ids=tuple(range(len(updates))),
    )


def update_of(result, round):
    """The update that a defense applied, in float64."""
    return result.params.double() - round.global_params.double()
