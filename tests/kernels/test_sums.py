import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import matrices

from datadefense.kernels import sums


def random_matrix(clients, dim, scale=1.0, seed=0):
    return scale * torch.randn(clients, dim, generator=torch.Generator().manual_seed(seed))


@given(matrices())
def test_small_ones_against_loops(updates):
    rows = updates.tolist()
    assert sums.norms(updates).tolist() == pytest.approx([oracles.norm(row) for row in rows])
    point = updates[0] * 0.5
    dots = [sum(a * b for a, b in zip(row, point.tolist(), strict=True)) for row in rows]
    assert sums.dots(updates, point).tolist() == pytest.approx(dots)


@pytest.mark.parametrize("dim", [1, 511, 512, 513, 65_536, 65_537, 200_001])
def test_every_split_into_blocks(dim):
    updates, point = random_matrix(3, dim), random_matrix(1, dim, seed=1)[0]
    exact, mark = updates.double(), point.double()
    assert torch.allclose(sums.squared_norms(updates), exact.square().sum(1), rtol=5e-7)
    assert torch.allclose(sums.dots(updates, point), exact @ mark, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("scale", [1e-38, 1e-30, 1e-20, 1e-12, 1e12, 1e20, 1e30, 1e37])
def test_every_size_of_number(scale):
    updates = random_matrix(4, 3000) * scale
    updates[1] = 0
    assert torch.allclose(
        sums.squared_norms(updates), updates.double().square().sum(1), rtol=1e-6, atol=0
    )


def test_ten_million_coordinates():
    """A plain float32 sum of squares is off by 1e-4 or more here; ours is not."""
    updates = random_matrix(2, 10_000_000)
    exact = torch.stack(
        [sum(part.double().square().sum() for part in row.split(1_000_000)) for row in updates]
    )
    assert torch.allclose(sums.squared_norms(updates), exact, rtol=1e-7)
    running = np.cumsum(updates.square().numpy(), axis=1, dtype=np.float32)[:, -1]
    assert (abs(running - exact.numpy()) / exact.numpy()).max() > 1e-5


@given(matrices(), st.booleans())
def test_a_view_that_is_not_contiguous(updates, flipped):
    wide = torch.stack([updates, updates + 1], dim=2)[:, :, int(flipped)]
    assert torch.allclose(sums.norms(wide), sums.norms(wide.contiguous()))
