import pytest
import torch
from hypothesis import given
from tests import oracles
from tests.strategies import matrices

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
    distances, exact = squared_distances(updates), exact_distances(updates)
    assert torch.allclose(distances, exact, rtol=1e-5, atol=0)
    assert torch.equal(distances, distances.T)
    assert distances.diagonal().eq(0).all()


@pytest.mark.parametrize("scale", [1e-38, 1e-25, 1e-15, 1e15, 1e25, 1e37])
def test_every_size_of_number(scale):
    updates = scale * torch.randn(5, 2000, generator=torch.Generator().manual_seed(0))
    updates[0] *= 1e-3
    assert torch.allclose(squared_distances(updates), exact_distances(updates), rtol=1e-5, atol=0)


def test_one_huge_row_leaves_the_others_exact():
    updates = torch.randn(6, 5000, generator=torch.Generator().manual_seed(0))
    updates[2] = 1e30
    distances = squared_distances(updates)
    assert distances.isfinite().all()
    assert torch.allclose(distances, exact_distances(updates), rtol=1e-6, atol=0)


def test_clones_are_at_distance_zero():
    updates = torch.randn(6, 5000, generator=torch.Generator().manual_seed(0))
    updates[[1, 4]] = updates[3].clone()
    distances = squared_distances(updates)
    assert distances[1, 3] == distances[3, 4] == distances[1, 4] == 0
    assert (distances == 0).sum() == 6 + 6


def test_where_the_float32_gram_matrix_goes_wrong():
    """Ten million columns: a plain Gram matrix changes the order of scores, ours does not."""
    updates = torch.randn(4, 10_000_000, generator=torch.Generator().manual_seed(0))
    exact = torch.zeros(4, 4, dtype=torch.float64)
    for start in range(0, 10_000_000, 1_000_000):
        exact += exact_distances(updates[:, start : start + 1_000_000])
    assert torch.allclose(squared_distances(updates), exact, rtol=1e-7)
