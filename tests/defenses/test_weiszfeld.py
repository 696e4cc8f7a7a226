import pytest
import torch
from tests import oracles

from datadefense.defenses.weiszfeld import (
    ByPairs,
    ByProducts,
    Stop,
    middle_of,
    reach,
    start_near_medoid,
    start_near_middle,
    weiszfeld,
)
from datadefense.kernels.distances import gram_of_differences, squared_distances


def drawn(clients=11, dim=300):
    return torch.randn(clients, dim, generator=torch.Generator().manual_seed(0))


def measures(rows):
    every = torch.arange(len(rows))
    return ByPairs(squared_distances(rows)), ByProducts(gram_of_differences(rows, every, 2))


@pytest.mark.parametrize("size", [1.0, 1e3])
def test_both_ways_to_measure_agree_with_the_distances(size):
    rows = drawn()
    rows[0] *= size
    weights = torch.rand(11, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weights /= weights.sum()
    step = torch.linspace(-1, 1, 11, dtype=torch.float64)
    for measure in measures(rows):
        exact = (rows.double() - weights @ rows.double()).norm(dim=1)
        assert torch.allclose(measure.distances(weights), exact, rtol=1e-5)
        line = measure.along(weights, step)
        for t in (0.0, 0.5, -2.0):
            exact = (rows.double() - (weights + t * step) @ rows.double()).norm(dim=1)
            assert torch.allclose(line.squared(t).sqrt(), exact, rtol=1e-5)


@pytest.mark.parametrize("size", [1e8, 1e20, 1e30])
def test_products_do_not_cancel_beside_an_update_far_out(size):
    rows = drawn()
    rows[0] *= size
    shares = torch.full((11,), 1 / 11, dtype=torch.float64)
    pairs = squared_distances(rows)
    middle = middle_of(shares, pairs)
    assert middle.row != 0
    weights = start_near_middle(shares, pairs, middle)
    measure = ByProducts(gram_of_differences(rows, torch.arange(11), middle.row))
    exact = (rows.double() - weights @ rows.double()).norm(dim=1)
    assert torch.allclose(measure.distances(weights), exact, rtol=1e-9)


def test_the_middle_is_not_the_attackers():
    """Eight of twelve are attackers, each somewhere else, with less than half of the examples."""
    rows = drawn(12)
    rows[:8] *= torch.logspace(1, 30, 8)[:, None]
    shares = torch.tensor([1.0] * 8 + [9.0] * 4, dtype=torch.float64)
    middle = middle_of(shares / shares.sum(), squared_distances(rows))
    assert middle.row >= 8
    honest = squared_distances(rows[8:]).max().sqrt()
    assert middle.radius <= honest * (1 + 1e-6)


def test_the_middle_does_not_depend_on_how_many_are_sorted_at_once(monkeypatch):
    pairs, shares = squared_distances(drawn()), torch.full((11,), 1 / 11, dtype=torch.float64)
    whole = middle_of(shares, pairs)
    monkeypatch.setattr("datadefense.defenses.weiszfeld.AT_ONCE", 1)
    assert middle_of(shares, pairs) == whole


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


def nearly_the_median(share):
    """Twelve updates at right angles, and one at zero with a share at which it is the median."""
    rows = torch.cat([torch.zeros(1, 12), torch.eye(12)])
    shares = torch.full((13,), (1 - share) / 12, dtype=torch.float64)
    shares[0] = share
    return rows, shares


@pytest.mark.slow
@pytest.mark.parametrize("nearness", [-1e-2, -1e-3, 0.0, 1e-3, 1e-2])
def test_steps_are_lengthened_where_iterations_creep(nearness, monkeypatch):
    exactly = 1 / (1 + 12**0.5)
    rows, shares = nearly_the_median(exactly + nearness)
    pairs = squared_distances(rows)
    start = start_near_medoid(shares, pairs)
    stop = Stop(100_000, 1e-7, 1e-6)
    found = weiszfeld(shares, start, ByPairs(pairs), stop)
    assert found.converged
    assert found.iterations <= 200
    monkeypatch.setattr("datadefense.defenses.weiszfeld.PLAIN", 100_000)
    plain = weiszfeld(shares, start, ByPairs(pairs), stop)
    assert plain.iterations > found.iterations
    assert float(shares @ found.distances) <= float(shares @ plain.distances) + 1e-9


def test_a_step_is_never_lengthened_past_the_bottom():
    rows, shares = nearly_the_median(0.22)
    measure = ByPairs(squared_distances(rows))
    before = torch.full((13,), 1 / 13, dtype=torch.float64)
    after = before.clone()
    after[0], after[1:] = 0.1, 0.9 / 12
    stop = Stop(1, 0.0, 1e-6)
    longest = reach(shares, before, after, measure, stop)

    def objective(t):
        return float(shares @ measure.distances(before + t * (after - before)))

    assert longest > 1
    tried = [objective(t) for t in torch.linspace(0, longest, 20).tolist()]
    assert tried == sorted(tried, reverse=True)
    assert objective(2 * longest) > min(objective(t) for t in (longest, 1.5 * longest))
