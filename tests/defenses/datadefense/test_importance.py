import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles

from datadefense.core.rng import generator
from datadefense.defenses.datadefense.importance import (
    L_theta,
    gradient_in_theta,
    linear_importance,
    relu_importance,
)
from datadefense.defenses.datadefense.losses import l_c, l_p

scores = st.lists(
    st.one_of(st.floats(-10, 10), st.just(0.0), st.sampled_from([5e-324, 1e-300, -1e6, 1e6])),
    min_size=1,
    max_size=9,
)


@given(scores)
def test_weights_against_the_formula(values):
    weights = relu_importance(torch.tensor(values, dtype=torch.float64))
    assert weights.tolist() == pytest.approx(oracles.relu_importance(values))
    assert (weights >= 0).all()
    expected = 1 if max(values) > 0 else 0
    assert float(weights.sum()) == pytest.approx(expected)


@pytest.mark.parametrize("values", [[0.0], [-1.0, -2.0], [0.0, 0.0, -3.0]])
def test_no_score_above_zero_gives_nobody_weight(values):
    assert relu_importance(torch.tensor(values).double()).tolist() == [0] * len(values)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=9))
def test_linear_weights(values):
    weights = linear_importance(torch.tensor(values, dtype=torch.float64))
    total = float(torch.tensor(values, dtype=torch.float64).sum())
    if abs(total) > 1e-3:
        assert weights.tolist() == pytest.approx([value / total for value in values])
        assert float(weights.sum()) == pytest.approx(1)


def test_linear_weights_may_be_negative_and_are_never_zero_over_zero():
    assert linear_importance(torch.tensor([3.0, -1.0]).double()).tolist() == [1.5, -0.5]
    assert linear_importance(torch.tensor([1.0, -1.0]).double()).tolist() == [0, 0]


class Toy:
    """A small nonlinear model on a vector, clients, and scores r = intercept + slopes theta.

    Forms: ``relu`` and ``linear`` as published and as released, from features s_j of any sign;
    ``penalties``: 1 - theta f_j with f_j >= 0, of the learned form.
    """

    def __init__(self, seed, form, clients=6):
        draw = generator(seed, "importance")

        def numbers(*shape):
            return torch.randn(*shape, generator=draw, dtype=torch.float64)

        self.form = form
        self.start, self.updates = numbers(4 * 3 + 3 * 3), numbers(clients, 21)
        self.inputs, self.y = numbers(6, 4), torch.randint(3, (6,), generator=draw)
        self.marked = torch.tensor([True, False] * 3)
        self.slopes, self.theta, self.intercept = numbers(clients, 3), numbers(3), 0.0
        if form == "penalties":
            self.slopes, self.theta, self.intercept = -self.slopes.abs(), self.theta.abs() / 4, 1.0
        if not bool((self.r(self.theta) > 0).any()):
            self.theta = -self.theta

    def loss(self, phi):
        z = (self.inputs @ phi[:12].view(4, 3)).tanh() @ phi[12:].view(3, 3)
        return L_theta(l_c(z, self.y), l_p(z, self.y), self.marked)

    def r(self, theta):
        return self.intercept + self.slopes @ theta

    def through_the_average(self, theta):
        """The loss as a function of theta, all clients' models in the graph."""
        kept = self.r(theta) if self.form == "linear" else self.r(theta).relu()
        phi = self.start
        for weight, update in zip(kept / kept.sum(), self.updates, strict=True):
            phi = phi + weight * update
        return self.loss(phi)

    def short_cut(self):
        r = self.r(self.theta)
        active = torch.ones_like(r, dtype=torch.bool) if self.form == "linear" else r > 0
        C = linear_importance(r) if self.form == "linear" else relu_importance(r)
        phi = (self.start + C @ self.updates).requires_grad_()
        (slope,) = torch.autograd.grad(self.loss(phi), phi)
        return gradient_in_theta(r, C, self.slopes, self.updates @ slope, active)


FORMS = pytest.mark.parametrize("form", ["relu", "linear", "penalties"])


@FORMS
@pytest.mark.parametrize("seed", range(10))
def test_the_gradient_is_that_through_the_whole_average(form, seed):
    toy = Toy(seed, form)
    theta = toy.theta.clone().requires_grad_()
    (expected,) = torch.autograd.grad(toy.through_the_average(theta), theta)
    assert toy.short_cut().tolist() == pytest.approx(expected.tolist(), rel=1e-7, abs=1e-9)
    assert torch.autograd.gradcheck(toy.through_the_average, theta)


@FORMS
def test_the_gradient_is_that_of_finite_differences(form):
    toy, step = Toy(3, form), 1e-6
    for place, slope in enumerate(toy.short_cut().tolist()):
        up, down = toy.theta.clone(), toy.theta.clone()
        up[place] += step
        down[place] -= step
        rise = toy.through_the_average(up) - toy.through_the_average(down)
        assert slope == pytest.approx(float(rise) / (2 * step), rel=1e-4, abs=1e-6)


def test_who_has_no_weight_has_no_part_in_the_gradient():
    toy = Toy(3, "relu")
    silent = toy.r(toy.theta) <= 0
    assert 0 < int(silent.sum()) < 6
    before = toy.short_cut()
    toy.updates[silent] *= 100
    assert torch.allclose(toy.short_cut(), before)


def test_a_dead_theta_has_no_gradient():
    scores = torch.tensor([-1.0, 0.0], dtype=torch.float64)
    slopes = torch.ones(2, 3, dtype=torch.float64)
    pulls = torch.tensor([5.0, -7.0], dtype=torch.float64)
    nobody = torch.zeros(2, dtype=torch.float64)
    assert gradient_in_theta(scores, nobody, slopes, pulls, scores > 0).tolist() == [0, 0, 0]


def test_one_client_cannot_be_weighed():
    one = torch.ones(1, dtype=torch.float64)
    slopes = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64)
    assert gradient_in_theta(one, one, slopes, 4 * one, one > 0).tolist() == [0, 0, 0]


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.integers(0, 99))
def test_what_theta_minimises(marked, seed):
    clean, poison = torch.rand(2, len(marked), generator=generator(seed), dtype=torch.float64)
    parts = ([], [])
    for c, p, mark in zip(clean.tolist(), poison.tolist(), marked, strict=True):
        parts[mark].append(p if mark else c)
    means = sum(sum(part) / len(part) for part in parts if part)
    marks = torch.tensor(marked)
    assert float(L_theta(clean, poison, marks)) == pytest.approx(means)
    assert float(L_theta(clean, poison, marks, "sum")) == pytest.approx(
        sum(parts[0]) + sum(parts[1])
    )


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("mark", [False, True])
def test_a_part_without_examples_counts_as_nothing(reduction, mark):
    clean = torch.tensor([1.0, 3.0], requires_grad=True)
    poison = torch.tensor([5.0, 9.0], requires_grad=True)
    loss = L_theta(clean, poison, torch.full((2,), mark), reduction)
    assert loss.item() == (14.0 if mark else 4.0) / (1 if reduction == "sum" else 2)
    slopes = torch.autograd.grad(loss, (clean, poison), materialize_grads=True)
    assert slopes[0 if mark else 1].tolist() == [0, 0]
    assert slopes[1 if mark else 0].tolist() == [1.0 if reduction == "sum" else 0.5] * 2
