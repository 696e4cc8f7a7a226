import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round, rounds, update_of

from datadefense import Server
from datadefense.defenses import Rfa
from datadefense.defenses.rfa import (
    distances_by_measure,
    distances_by_pairs,
    start_near_medoid,
)
from datadefense.kernels.distances import squared_distances
from datadefense.settings import SettingsError


@given(rounds(), st.integers(1, 6))
def test_each_iteration_is_weiszfelds(round, iterations):
    rule = Rfa(max_iterations=iterations, tolerance=0.0, smoothing=1e-3)
    rows, counts = round.updates.tolist(), round.num_examples.tolist()
    shares = [count / sum(counts) for count in counts]
    expected = oracles.weiszfeld(rows, shares, iterations, 1e-3)
    result = rule.aggregate(None, round, Server())
    assert update_of(result, round).tolist() == pytest.approx(expected, abs=1e-4)


def test_of_updates_as_good_the_first_is_begun_from_whatever_rounding_prefers():
    """0 and -0.125 have the same sum of distances; summed in some order, either has less."""
    rows = torch.tensor([[-0.25], [0.0], [-0.25], [0.0], [-0.125], [0.0], [0.0]])
    counts = [21, 1, 47, 1, 4, 20, 50]
    shares = torch.tensor(counts, dtype=torch.float64) / sum(counts)
    pairs = (rows - rows.T).double().square()
    nudged = pairs.clone()
    nudged[4] *= 1 - 1e-9
    for known in (pairs, nudged):
        start = start_near_medoid(shares, known)
        weights = oracles.medoid_start(rows.tolist(), shares.tolist())
        expected = torch.tensor(weights, dtype=torch.float64)
        assert torch.allclose(start, expected / expected.sum())


@given(rounds(min_clients=3))
def test_nothing_nearby_is_better(round):
    result = Rfa().aggregate(None, round, Server())
    point = update_of(result, round)
    shares = round.shares().double()

    def objective(v):
        return float(shares @ (round.updates.double() - v).norm(dim=1))

    best = objective(point)
    for step in torch.eye(len(point), dtype=torch.float64):
        for size in (0.01, -0.01):
            assert objective(point + size * step) >= best - 1e-5


@pytest.mark.parametrize("size", [1.0, 1e3, 1e8, 1e30])
def test_both_ways_to_measure_agree_and_outliers_are_bounded(size):
    rows = torch.randn(11, 300, generator=torch.Generator().manual_seed(0))
    honest = Rfa().aggregate(None, as_round(rows[1:]), Server())
    rows[0] *= size
    round = as_round(rows)
    result = Rfa().aggregate(None, round, Server())
    assert result.report["converged"]
    weights = torch.full((11,), 1 / 11, dtype=torch.float64)
    if size <= 1e3:
        by_pairs = distances_by_pairs(squared_distances(rows))(weights)
        assert torch.allclose(by_pairs, distances_by_measure(rows)(weights), rtol=1e-5)
    moved = (update_of(result, round) - update_of(honest, as_round(rows[1:]))).norm()
    assert moved < 3.0


def test_a_far_attacker_does_not_stop_the_iteration_early():
    """Its distance is nearly all of the objective, which looks converged at once."""
    rows = torch.randn(10, 50, generator=torch.Generator().manual_seed(0))
    near, far = rows.clone(), rows.clone()
    near[0], far[0] = 1e2, 1e20
    results = [Rfa().aggregate(None, as_round(m), Server()).params for m in (near, far)]
    assert torch.allclose(*results, atol=0.05)


@pytest.mark.parametrize("size", [1e3, 1e10, 1e30])
@pytest.mark.parametrize("claimed", [0.4, 0.49, 0.495])
def test_bounded_below_half_of_the_examples(claimed, size):
    """From the mean, as in the paper, an attacker with 49 % of the claims carries it away."""
    rows = torch.randn(10, 2000, generator=torch.Generator().manual_seed(0))
    rows[0] = size
    counts = [round(9000 * claimed / (1 - claimed)), *[1000] * 9]
    result = Rfa().aggregate(None, as_round(rows, counts), Server())
    assert result.report["converged"]
    assert update_of(result, as_round(rows)).norm() < 45 / (0.5 - claimed)


def test_several_far_attackers_are_cheap():
    rows = torch.randn(10, 2000, generator=torch.Generator().manual_seed(0))
    rows[:4] = 1e30 * torch.randn(4, 2000, generator=torch.Generator().manual_seed(1))
    result = Rfa().aggregate(None, as_round(rows), Server())
    assert result.report["converged"]
    assert result.report["iterations"] < 100


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_iterations": 0}, "max_iterations must be >= 1, got 0"),
        ({"tolerance": -1.0}, "tolerance must be >= 0, got -1"),
        ({"smoothing": 0.0}, "smoothing must be > 0, got 0"),
        ({"smoothing": float("nan")}, "smoothing must be a finite number, got nan"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(SettingsError, match=message):
        Rfa(**settings)
