"""Mimic, against the first singular vector of the honest updates."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from tests.attacks.views import assert_stands_all, normal, view_of
from tests.strategies import matrices

from datadefense.attacks.mimic import Mimic, along_greatest_variance


def slow_heights(rows):
    """|z . h_i| by the singular vectors of the centred rows, and how clear z is."""
    rows = np.array(rows, dtype=np.float64)
    _, values, ways = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
    gap = values[0] - values[1] if len(values) > 1 else values[0]
    return np.abs(rows @ ways[0]), gap, values


@given(matrices(min_clients=2, max_clients=8))
def test_all_copy_the_client_furthest_along_the_greatest_variance(honest):
    heights, gap, values = slow_heights(honest.tolist())
    assume(gap > 1e-2)
    plot = Mimic().agree(view_of(honest, attackers=3))
    row = plot.updates[0]
    assert torch.equal(plot.updates, row.expand(3, -1))
    copied = [place for place, one in enumerate(honest) if torch.equal(one, row)]
    assert max(heights[copied]) == pytest.approx(heights.max(), rel=1e-3, abs=1e-3)
    share = values[0] ** 2 / (values**2).sum()
    assert plot.facts["variance_share"] == pytest.approx(share, rel=1e-4)
    ours = along_greatest_variance(honest)[0].abs().tolist()
    assert ours == pytest.approx(heights.tolist(), rel=1e-3, abs=1e-3)


def test_one_who_differs_most_is_copied():
    honest = 0.01 * normal(8)
    honest[5] += 3 * normal(1, seed=9)[0]
    assert torch.equal(Mimic().agree(view_of(honest)).updates[0], honest[5])


def test_it_stands_whatever_the_round_is():
    assert_stands_all(Mimic())
