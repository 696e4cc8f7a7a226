import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles

from datadefense.core.rng import generator
from datadefense.defenses.datadefense.theta_box import ThetaBox

RANGES = ((0.1, 0.3), (1.5, 2.0), (0.0, 0.0))


def vector(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_theta_is_drawn_uniformly_within_the_box():
    box = ThetaBox.of(*RANGES)
    drawn = torch.stack([box.draw(generator(seed)) for seed in range(400)])
    assert ((drawn >= box.low) & (drawn <= box.high)).all()
    assert drawn.mean(0).tolist() == pytest.approx([0.2, 1.75, 0.0], abs=0.02)
    assert drawn[:, :2].std(0).tolist() == pytest.approx([0.2 / 12**0.5, 0.5 / 12**0.5], rel=0.1)


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3), st.floats(0, 1))
def test_a_step_against_the_formula(gradient, rate):
    start, box = [0.2, 1.6, 0.0], ThetaBox.of(*RANGES)
    found = box.step(vector(*start), vector(*gradient), rate).tolist()
    widths = [high - low for low, high in RANGES]
    scaled = [g * w for g, w in zip(gradient, widths, strict=True)]
    length = oracles.norm(scaled)
    if length < 1e-150:
        return
    expected = [
        oracles.between(theta - rate * w * s / length, low, high)
        for theta, w, s, (low, high) in zip(start, widths, scaled, RANGES, strict=True)
    ]
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("value", [0.0, float("nan"), float("inf")])
def test_a_gradient_that_is_zero_or_not_finite_moves_nothing(value):
    theta = vector(0.2, 1.6, 0.0)
    found = ThetaBox.of(*RANGES).step(theta, vector(value, 0.0, 0.0), 0.5)
    assert torch.equal(found, theta)
