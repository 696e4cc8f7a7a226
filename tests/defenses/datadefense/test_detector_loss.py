import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles

from datadefense.core.rng import generator
from datadefense.defenses.datadefense.detector_loss import L_pred, L_psi, V, l_consist


@st.composite
def marks(draw, max_size=8):
    return draw(st.lists(st.booleans(), min_size=1, max_size=max_size))


def numbers(seed, *shape):
    return torch.randn(*shape, generator=generator(seed, "costs"), dtype=torch.float64)


@given(st.integers(0, 999), marks())
def test_consistency_is_the_sum_over_pairs(seed, known):
    gamma = numbers(seed, len(known)).sigmoid()
    expected = oracles.consistency(gamma.tolist(), known)
    assert float(l_consist(gamma, torch.tensor(known))) == pytest.approx(expected, abs=1e-12)


@given(st.integers(0, 999), st.integers(1, 8))
def test_the_cost_of_a_ranking_is_a_sum_over_examples(seed, count):
    gamma, margins = numbers(seed, count).sigmoid(), 9 * numbers(seed + 1, count)
    expected = sum(g * m for g, m in zip(gamma.tolist(), margins.tolist(), strict=True))
    assert float(V(gamma, margins)) == pytest.approx(expected, abs=1e-10)


@given(st.integers(0, 999), marks(), st.integers(1, 4))
def test_the_prediction_is_scored_on_known_clean_examples_only(seed, known, classes):
    z = numbers(seed, len(known), classes)
    y = torch.randint(classes, (len(known),), generator=generator(seed))
    expected = 0.0
    for row, label, is_clean in zip(z.tolist(), y.tolist(), known, strict=True):
        if is_clean:
            expected += math.log(sum(math.exp(value) for value in row)) - row[label]
    assert float(L_pred(z, y, torch.tensor(known))) == pytest.approx(expected, abs=1e-10)


def test_what_psi_minimises():
    assert float(L_psi(torch.tensor(2.0), torch.tensor(3.0), 10.0)) == 32


@pytest.mark.parametrize("known", [False, True])
def test_with_nothing_or_everything_known_clean_there_are_no_pairs(known):
    gamma = torch.tensor([0.0, 0.3, 1.0], requires_grad=True)
    cost = l_consist(gamma, torch.full((3,), known))
    assert cost.item() == 0
    (slope,) = torch.autograd.grad(cost, gamma)
    assert slope.tolist() == [0, 0, 0]


def test_without_known_clean_examples_the_prediction_costs_nothing():
    z = torch.randn(3, 2, generator=generator(0), requires_grad=True)
    cost = L_pred(z, torch.tensor([0, 1, 1]), torch.zeros(3, dtype=torch.bool))
    assert cost.item() == 0
    (slope,) = torch.autograd.grad(cost, z)
    assert slope.tolist() == [[0, 0]] * 3
