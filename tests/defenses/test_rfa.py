import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round, rounds, update_of

from datadefense import Server
from datadefense.core.settings import SettingsError
from datadefense.defenses import Rfa, rfa


@given(rounds(), st.integers(1, 6))
def test_each_iteration_is_weiszfelds(round, iterations):
    rule = Rfa(max_iterations=iterations, tolerance=0.0, smoothing=1e-3)
    rows, counts = round.updates.tolist(), round.num_examples.tolist()
    shares = [count / sum(counts) for count in counts]
    expected = oracles.weiszfeld(rows, shares, iterations, 1e-3)
    result = rule.aggregate(None, round, Server())
    assert update_of(result, round).tolist() == pytest.approx(expected, abs=1e-4)


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
def test_outliers_are_bounded(size):
    rows = torch.randn(11, 300, generator=torch.Generator().manual_seed(0))
    honest = Rfa().aggregate(None, as_round(rows[1:]), Server())
    rows[0] *= size
    round = as_round(rows)
    result = Rfa().aggregate(None, round, Server())
    assert result.report["converged"]
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


def slope_at(point, rows, shares):
    """How far from the optimum: the norm of sum_j share_j (v - u_j) / |v - u_j|, which is 0 there.

    What is within 1e-5 of an update has that update's share as its slack.
    """
    away = point - rows.double()
    lengths = away.norm(dim=1)
    at = lengths <= 1e-5
    pull = (shares / lengths.clamp(min=1e-300) * ~at) @ away
    return max(0.0, float(pull.norm()) - float(shares[at].sum()))


@pytest.mark.parametrize("far", [1e3, 1e10, 1e30])
@pytest.mark.parametrize("claimed", [380, 400, 410, 414, 418, 420, 425])
def test_two_clients_cannot_make_it_run_for_long(claimed, far, monkeypatch):
    """One far out that claims little, and one at zero that is nearly the median by its claims.

    It was 1,000 iterations, each two passes over the matrix, and not converged.
    """
    rows = 0.01 * torch.randn(20, 5000, generator=torch.Generator().manual_seed(0))
    rows[0], rows[1] = far, 0.0
    round = as_round(rows, [1, claimed, *[100] * 18])
    passes = []
    for name in ("squared_distances", "gram_of_differences"):
        call = getattr(rfa, name)
        monkeypatch.setattr(rfa, name, lambda *a, call=call: (passes.append(1), call(*a))[1])
    result = Rfa().aggregate(None, round, Server())
    assert result.report["converged"]
    assert result.report["iterations"] <= 200
    assert len(passes) <= 2
    shares = round.num_examples.double() / round.num_examples.sum()
    point = result.weights[1:].double() @ rows[1:].double() + float(result.weights[0]) * far
    assert slope_at(point, rows, shares) < 1e-3


def test_more_attackers_than_honest_clients_that_claim_little():
    """Bounded while they have less than half of the examples, however many they are."""
    rows = torch.randn(20, 300, generator=torch.Generator().manual_seed(0))
    honest = update_of(Rfa().aggregate(None, as_round(rows[12:]), Server()), as_round(rows[12:]))
    rows[:12] *= 1e30
    round = as_round(rows, [*[1] * 12, *[100] * 8])
    result = Rfa().aggregate(None, round, Server())
    assert result.report["converged"]
    assert (update_of(result, round) - honest).norm() < 1.0


def test_attackers_of_every_size_in_front():
    """The first is far out, the second farther: beside the last, all seem equally good."""
    rows = torch.randn(40, 600, generator=torch.Generator().manual_seed(0))
    honest = update_of(Rfa().aggregate(None, as_round(rows[7:]), Server()), as_round(rows[7:]))
    for row in range(7):
        rows[row] *= 10.0 ** (5 * row + 2)
    result = Rfa().aggregate(None, as_round(rows), Server())
    assert result.report["converged"]
    assert result.report["iterations"] < 30
    assert (update_of(result, as_round(rows)) - honest).norm() < 8.0


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
