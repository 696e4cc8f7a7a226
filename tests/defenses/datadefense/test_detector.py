from itertools import starmap

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles

from datadefense.core.rng import generator
from datadefense.defenses.datadefense.detector import (
    Psi,
    draw_psi,
    g_2,
    gamma,
    min_max,
    standardise,
    y_hat_logits,
)


def draw(seed, examples, width, classes, hidden):
    """A small detector and what it looks at, in float64."""
    numbers = generator(seed, "detector")
    psi = Psi(*(weight.double() for weight in draw_psi(width, classes, numbers, hidden)))
    h_1 = torch.randn(examples, width, generator=numbers, dtype=torch.float64)
    return psi, h_1, torch.randint(classes, (examples,), generator=numbers)


@given(st.integers(0, 999), st.integers(2, 7), st.integers(1, 5), st.integers(1, 4))
def test_against_the_equations(seed, examples, width, classes):
    psi, h_1, y = draw(seed, examples, width, classes, hidden=6)
    lists = [weight.tolist() for weight in psi]
    scores = oracles.detector_scores(lists, h_1.tolist(), y.tolist())
    assert g_2(psi, y_hat_logits(psi, h_1), y).tolist() == pytest.approx(scores, abs=1e-12)
    if max(scores) - min(scores) > 1e-3:
        expected = oracles.min_max(scores)
        assert gamma(psi, h_1, y).tolist() == pytest.approx(expected, abs=1e-8)


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=9))
def test_scores_fill_the_unit_interval_or_are_all_one_half(values):
    scores = min_max(torch.tensor(values, dtype=torch.float64))
    if scores.tolist() == [0.5] * len(values):
        assert max(values) - min(values) <= 1e-6 * max(1.0, abs(max(values)))
    else:
        assert scores.min() == 0
        assert scores.max() == 1
        assert scores.tolist() == pytest.approx(oracles.min_max(values))


@pytest.mark.parametrize(
    "values",
    [
        [3.0],
        [0.0, 0.0, 0.0],
        [2e4, 2e4 + 1e-3, 2e4],
        [-5.0, -5.0 + 1e-7],
        [float("nan"), 1.0],
        [float("inf"), 1.0],
        [-float("inf"), 1.0],
        [-3e38, 3e38],
    ],
)
def test_a_range_that_tells_nothing_apart_is_one_half_without_gradient(values):
    given = torch.tensor(values, requires_grad=True)
    scores = min_max(given)
    assert scores.tolist() == [0.5] * len(values)
    assert not scores.requires_grad


def test_a_gradient_through_the_norm_is_right():
    psi, h_1, y = draw(3, 5, 3, 3, hidden=4)

    def scores(*weights):
        return gamma(Psi(*weights), h_1, y)

    assert torch.autograd.gradcheck(scores, tuple(weight.requires_grad_() for weight in psi))


@given(st.integers(0, 999))
def test_the_order_of_examples_does_not_matter(seed):
    psi, h_1, y = draw(seed, 8, 4, 3, hidden=6)
    order = torch.randperm(8, generator=generator(seed, "order"))
    plain = gamma(psi, h_1, y)
    assert torch.allclose(gamma(psi, h_1[order], y[order]), plain[order], atol=1e-12)


def test_psi_is_drawn_from_its_generator_alone():
    one, two = (draw_psi(12, 3, generator(0, "psi"), 256) for _ in range(2))
    other = draw_psi(12, 3, generator(1, "psi"), 256)
    assert all(starmap(torch.equal, zip(one, two, strict=True)))
    assert not any(starmap(torch.equal, zip(one, other, strict=True)))
    shapes = [tuple(weight.shape) for weight in one]
    assert shapes == [(256, 12), (3, 256), (256, 6), (1, 256)]


def test_psi_is_drawn_as_wide_as_xavier_says():
    psi = draw_psi(300, 100, generator(0, "psi"), 256)
    for weight in psi:
        rows, columns = weight.shape
        assert float(weight.std()) == pytest.approx((2 / (rows + columns)) ** 0.5, rel=0.1)


@given(st.integers(0, 999), st.integers(2, 6), st.integers(1, 4))
def test_standardised_columns(seed, examples, width):
    raw = 3 + 5 * torch.randn(examples, width, generator=generator(seed), dtype=torch.float64)
    for column, result in zip(raw.T.tolist(), standardise(raw).T.tolist(), strict=True):
        mean = sum(column) / examples
        deviation = (sum((x - mean) ** 2 for x in column) / examples) ** 0.5
        expected = [(x - mean) / (deviation + 1e-6) / width**0.5 for x in column]
        assert result == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("constant", [0.0, 0.1, -7.0, 1e6, 1e30])
@pytest.mark.parametrize("examples", [1, 50])
def test_a_constant_column_becomes_zero_and_leaves_the_others_alone(constant, examples):
    varied = torch.randn(examples, 1, generator=generator(0))
    features = torch.cat([torch.full((examples, 1), constant), varied], dim=1)
    result = standardise(features)
    assert result.isfinite().all()
    assert result[:, 0].tolist() == [0] * examples
    if examples > 1:
        assert float(result[:, 1].std(correction=0)) == pytest.approx(2**-0.5, rel=1e-3)
