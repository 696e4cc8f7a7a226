"""Rounds of the learned form on the toy, and what must hold after each of them."""

from functools import cache
from itertools import starmap

import pytest
import torch
from tests.defenses.datadefense import toys

from datadefense.core.rng import generator
from datadefense.defenses import DataDefenseLearned
from datadefense.defenses.datadefense.detector_fit import Steps
from datadefense.defenses.datadefense.penalties import NAMES

POISONED = list(range(80, 100))
"""Places of the poisoned examples in the toy's defense set."""
DEFAULT = DataDefenseLearned()
BOX = [[getattr(DEFAULT, f"{name}_{end}") for name in NAMES] for end in ("low", "high")]
"""The least and the greatest theta."""


def steps(count, rate):
    """Steps of psi with the weights of the defaults."""
    return Steps(count, rate, DEFAULT.lam, DEFAULT.consistency, DEFAULT.margin_clip)


@cache
def started(seed=0):
    """The state before the first round on the toy's server; it depends on no setting."""
    return DataDefenseLearned().init(toys.server(seed=seed), toys.released())


def one_round(defense, round, server=None, state=None):
    """Aggregate from the given state, from a fresh one, or on the toy's own server."""
    if server is None:
        return defense.aggregate(state or started(), round, toys.server())
    state = state or defense.init(server, round.global_params)
    return defense.aggregate(state, round, server)


def several_rounds(defense, server, start, rounds=3, clients=4):
    state = defense.init(server, start)
    for index in range(1, rounds + 1):
        draw = generator(index, "several")
        updates = 0.1 * torch.randn(clients, len(start), generator=draw)
        round = toys.round_of(updates, index, start)
        result = defense.aggregate(state, round, server)
        is_sound(result, round)
        state, start = result.state, result.params
    return result


def is_sound(result, round):
    """Finite everywhere, weights >= 0 that sum to 1 or are all 0 with a fallback."""
    assert result.params.isfinite().all()
    assert in_the_box(result.state.theta)
    assert all(weight.isfinite().all() for weight in result.state.psi)
    assert all(values.isfinite().all() for values in result.evidence.values())
    assert (result.weights >= 0).all()
    total = float(result.weights.sum())
    assert total == pytest.approx(0 if "fallback" in result.report else 1, abs=1e-5)
    if not total:
        assert torch.equal(result.params, round.global_params)
    assert len(result.reasons) == round.num_clients


def in_the_box(theta):
    low, high = (torch.tensor(end, dtype=torch.float64) for end in BOX)
    return bool(((low <= theta) & (theta <= high)).all())


def same_psi(left, right):
    return all(starmap(torch.equal, zip(left, right, strict=True)))
