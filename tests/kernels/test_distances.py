import pytest
import torch
from hypothesis import given
from tests import oracles
from tests.strategies import matrices

from datadefense.kernels import distances
from datadefense.kernels.distances import squared_distances


def exact_distances(updates):
    rows = updates.double()
    return torch.stack([(rows - row).square().sum(1) for row in rows])


@given(matrices())
def test_against_loops(updates):
    rows = updates.tolist()
    expected = [[oracles.squared_distance(a, b) for b in rows] for a in rows]
    assert squared_distances(updates).tolist() == expected


@pytest.mark.parametrize("dim", [7, 512, 70_000])
@pytest.mark.parametrize("common", [0.0, 1.0, 1e3, 1e6])
def test_a_common_part_does_not_cancel(dim, common):
    draw = torch.Generator().manual_seed(0)
    updates = torch.randn(6, dim, generator=draw) + common * torch.randn(dim, generator=draw)
    found, exact = squared_distances(updates), exact_distances(updates)
    assert torch.allclose(found, exact, rtol=1e-6, atol=0)
    assert torch.equal(found, found.T)
    assert found.diagonal().eq(0).all()


@pytest.mark.parametrize("scale", [1e-38, 1e-25, 1e-15, 1e15, 1e25, 1e37])
def test_every_size_of_number(scale):
    updates = scale * torch.randn(5, 2000, generator=torch.Generator().manual_seed(0))
    updates[0] *= 1e-3
    assert torch.allclose(squared_distances(updates), exact_distances(updates), rtol=1e-5, atol=0)


def test_one_huge_row_leaves_the_others_exact():
    updates = torch.randn(6, 5000, generator=torch.Generator().manual_seed(0))
    updates[2] = 1e30
    found = squared_distances(updates)
    assert found.isfinite().all()
    assert torch.allclose(found, exact_distances(updates), rtol=1e-6, atol=0)


def test_clones_are_at_distance_zero():
    updates = torch.randn(6, 5000, generator=torch.Generator().manual_seed(0))
    updates[[1, 4]] = updates[3].clone()
    found = squared_distances(updates)
    assert found[1, 3] == found[3, 4] == found[1, 4] == 0
    assert (found == 0).sum() == 6 + 6


def test_many_clones_and_many_huge_rows_stay_cheap(monkeypatch):
    """Attackers can buy a second pass over the matrix, not one for each pair of them."""
    updates = torch.randn(60, 3000, generator=torch.Generator().manual_seed(0))
    updates[:20] = updates[20].clone()
    updates[21:40] *= 1e25
    measured = []
    original = distances._measured
    monkeypatch.setattr(distances, "_measured", lambda *a: (measured.append(1), original(*a))[1])
    assert torch.allclose(squared_distances(updates), exact_distances(updates), rtol=1e-6, atol=0)
    assert not measured


def test_a_common_part_costs_passes_not_pairs(monkeypatch):
    draw = torch.Generator().manual_seed(0)
    updates = torch.randn(40, 3000, generator=draw) + 30 * torch.randn(3000, generator=draw)
    monkeypatch.setattr(distances, "_measured", None)
    assert torch.allclose(squared_distances(updates), exact_distances(updates), rtol=1e-9)


def test_scratch_does_not_grow_with_the_square_of_the_clients(monkeypatch):
    updates = torch.randn(50, 5000, generator=torch.Generator().manual_seed(0))
    whole = squared_distances(updates)
    monkeypatch.setattr(distances, "SCRATCH", 1)
    assert torch.allclose(squared_distances(updates), whole, rtol=1e-9)


def test_ten_million_columns():
    """Long sums do not drift."""
    updates = torch.randn(4, 10_000_000, generator=torch.Generator().manual_seed(0))
    exact = torch.zeros(4, 4, dtype=torch.float64)
    for start in range(0, 10_000_000, 1_000_000):
        exact += exact_distances(updates[:, start : start + 1_000_000])
    assert torch.allclose(squared_distances(updates), exact, rtol=1e-7)
