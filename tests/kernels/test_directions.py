"""Angles and distances of wide matrices, over several parts, beside plain float64."""

import pytest
import torch
from hypothesis import given
from tests.strategies import matrices

from datadefense.kernels.directions import (
    absolute_distances,
    cosine_distances,
    distances_from,
    exact_dots,
    exact_gram,
)
from datadefense.kernels.passes import chosen_columns
from datadefense.kernels.signs import sign_votes

DRAW = torch.Generator().manual_seed(0)
WIDE = torch.randn(7, 70_001, generator=DRAW)
VECTOR = torch.randn(70_001, generator=DRAW)


def test_products_and_distances_over_many_parts():
    rows, vector = WIDE.double(), VECTOR.double()
    assert torch.allclose(exact_gram(WIDE), rows @ rows.T, rtol=1e-12)
    moved = rows + vector
    assert torch.allclose(exact_gram(WIDE, VECTOR), moved @ moved.T, rtol=1e-12)
    assert torch.allclose(exact_dots(WIDE, VECTOR), rows @ vector, rtol=1e-9)
    assert torch.allclose(distances_from(WIDE, VECTOR), (rows - vector).norm(dim=1), rtol=1e-12)
    apart = (rows[:, None] - rows[None]).abs().sum(2)
    assert torch.allclose(absolute_distances(WIDE), apart, rtol=1e-12)


def test_models_that_are_nearly_one():
    """Angles of 1e-6: 1 - cos is 5e-13 of 1, and told to three digits."""
    model = torch.ones(4096)
    rows = torch.zeros(2, 4096)
    rows[0, 0], rows[1, 1] = 1e-2, 1e-2
    found = float(cosine_distances(exact_gram(rows, model))[0, 1])
    assert found == pytest.approx((2 * 1e-4) / (2 * 4096), rel=1e-2)


@given(matrices())
def test_cosine_distances(rows):
    found = cosine_distances(exact_gram(rows))
    assert (found >= 0).all()
    assert (found <= 2).all()
    assert torch.equal(found, found.T)
    for i, a in enumerate(rows.double()):
        for j, b in enumerate(rows.double()):
            length = a.norm() * b.norm()
            expected = 0.0 if i == j else 1.0 if length == 0 else 1 - float(a @ b / length)
            assert float(found[i, j]) == pytest.approx(expected, abs=1e-12)


def test_lengths_do_not_matter():
    rows = torch.stack([WIDE[0], 1e30 * WIDE[0], 1e-30 * WIDE[0], -1e-20 * WIDE[0]])
    found = cosine_distances(exact_gram(rows))
    assert found[0].tolist() == pytest.approx([0, 0, 0, 2], abs=1e-9)


def test_columns_and_votes():
    places = torch.tensor([0, 5, 512, 70_000])
    assert torch.equal(chosen_columns(WIDE, places), WIDE[:, places])
    assert torch.equal(sign_votes(WIDE), WIDE.sign().sum(0))
