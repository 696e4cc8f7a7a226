import hashlib

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
    monkeypatch.setattr(distances, "gram_of_differences", None)
    assert torch.allclose(squared_distances(updates), exact_distances(updates), rtol=1e-6, atol=0)


def test_a_common_part_costs_passes_not_pairs(monkeypatch):
    draw = torch.Generator().manual_seed(0)
    updates = torch.randn(40, 3000, generator=draw) + 30 * torch.randn(3000, generator=draw)
    monkeypatch.setattr(distances, "gram_of_differences", None)
    assert torch.allclose(squared_distances(updates), exact_distances(updates), rtol=1e-9)


def near_clones(clients, dim, *shares):
    """Rows around one another: each level of the nest is a share of the one around it."""
    draw = torch.Generator().manual_seed(0)
    updates = torch.randn(clients, dim, generator=draw)
    for level, share in enumerate(shares):
        inner = updates[level + 1 :]
        inner[:] = inner[0].clone()
        width = dim // (level + 2)
        inner[:, :width] = share * torch.randn(len(inner), width, generator=draw)
    return updates


@pytest.mark.parametrize("shares", [(1e-7,), (1e-6, 1e-12), (1e-5, 1e-12, 1e-20, 1e-30)])
def test_near_clones_are_exact_and_cost_a_pass_a_level(monkeypatch, shares):
    """Of m near-clones, every one of m^2 / 2 pairs was a pass over two rows."""
    updates = near_clones(40, 3000, *shares)
    clusters = []
    original = distances.gram_of_differences
    monkeypatch.setattr(
        distances,
        "gram_of_differences",
        lambda rows, cluster: (clusters.append(len(cluster)), original(rows, cluster))[1],
    )
    found = squared_distances(updates)
    assert torch.allclose(found, exact_distances(updates), rtol=1e-6, atol=0)
    assert torch.equal(found, found.T)
    assert 1 <= len(clusters) <= len(shares)


def test_rows_that_look_alike_are_read_once_to_tell_clones(monkeypatch):
    """Near-clones that differ in their last value: each was compared with every other."""
    updates = torch.randn(2000, generator=torch.Generator().manual_seed(0)).repeat(30, 1)
    updates[:20, -1] += torch.arange(20) // 2
    read = []
    monkeypatch.setattr(
        distances, "blake2b", lambda data: (read.append(1), hashlib.blake2b(data))[1]
    )
    found = squared_distances(updates)
    assert torch.equal(found == 0, exact_distances(updates) == 0)
    assert len(read) <= 30


def test_zeros_of_both_signs_are_clones():
    updates = torch.randn(5, 1000, generator=torch.Generator().manual_seed(0))
    updates[3] = updates[1]
    updates[1, 7], updates[3, 7] = 0.0, -0.0
    found = squared_distances(updates)
    assert found[1, 3] == 0
    assert torch.equal(found[1], found[3])


def test_scratch_does_not_grow_with_the_square_of_the_clients(monkeypatch):
    updates = torch.randn(50, 5000, generator=torch.Generator().manual_seed(0))
    whole = squared_distances(updates)
    monkeypatch.setattr(distances, "SCRATCH", 1)
    assert torch.allclose(squared_distances(updates), whole, rtol=1e-9)


@pytest.mark.slow
def test_ten_million_columns():
    """Long sums do not drift."""
    updates = torch.randn(4, 10_000_000, generator=torch.Generator().manual_seed(0))
    exact = torch.zeros(4, 4, dtype=torch.float64)
    for start in range(0, 10_000_000, 1_000_000):
        exact += exact_distances(updates[:, start : start + 1_000_000])
    assert torch.allclose(squared_distances(updates), exact, rtol=1e-7)


def test_a_matrix_that_is_not_contiguous():
    updates = torch.randn(2000, 6, generator=torch.Generator().manual_seed(0))
    updates[:, 1] = updates[:, 4]
    assert torch.equal(
        squared_distances(updates.T) == 0, squared_distances(updates.T.contiguous()) == 0
    )
    assert squared_distances(updates.T)[1, 4] == 0
