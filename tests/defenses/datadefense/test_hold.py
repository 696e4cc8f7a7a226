import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.defenses.datadefense import sets

from datadefense.defenses.datadefense.hold import Held, Limits, hold

DIM = 3
START = torch.zeros(DIM, dtype=torch.float64)
ROWS = torch.arange(4 * DIM, dtype=torch.float64).view(-1, DIM).sin()
"""Clients' updates that no two sets of weights confuse."""


def limits(known, *, corrections=5, halvings=5, aim=0.98):
    return Limits(known, aim, corrections, halvings)


def old_of(weights, known=0.0):
    return Held(START, torch.zeros(len(weights)), 0.0, 0.0, known)


def average(weights):
    return START + weights @ ROWS[: len(weights)]


class Taught:
    """What a logistic model knows along a direction: S = 1 / (1 + exp(off - w.x)), by hand."""

    def __init__(self, direction, off):
        self.direction, self.off = direction, off

    def knows(self, params):
        dot = sum(w * x for w, x in zip(self.direction, list(params), strict=True))
        return 1 / (1 + math.exp(self.off - float(dot)))

    def slope(self, params):
        known = self.knows(params)
        return torch.tensor([known * (1 - known) * w for w in self.direction], dtype=torch.float64)


number = st.integers(-24, 24).map(lambda n: n / 8)
taught = st.builds(Taught, st.lists(number, min_size=DIM, max_size=DIM), number)
some_weights = st.lists(st.integers(0, 16).map(lambda n: n / 8), min_size=1, max_size=4).map(
    lambda column: torch.tensor(column, dtype=torch.float64)
)


@given(taught, some_weights, st.floats(0.01, 0.9), st.integers(0, 5), st.integers(0, 5))
def test_against_loops(model, weights, limit, corrections, halvings):
    found = hold(
        average,
        model.knows,
        model.slope,
        weights,
        limits=limits(limit, corrections=corrections, halvings=halvings),
        old=old_of(weights),
    )
    expected, step, far = sets.slow_hold(
        START.tolist(),
        lambda step: average(step * weights).tolist(),
        model.knows,
        lambda params: model.slope(params).tolist(),
        limit=limit,
        corrections=corrections,
        halvings=halvings,
    )
    if not (weights > 0).any():
        assert found.step == 0
        return
    assert found.step == step
    assert found.weights.tolist() == (step * weights).tolist()
    assert found.params.tolist() == pytest.approx(expected, abs=1e-7)
    assert found.corrected == pytest.approx(far, abs=1e-7)


answers = st.lists(
    st.one_of(st.floats(0, 1), st.sampled_from([math.nan, math.inf, -math.inf, 0.5, 0.0, 1.0])),
    min_size=1,
    max_size=20,
)
slopes = st.lists(
    st.one_of(number, st.sampled_from([math.nan, math.inf, 1e30, 1e-30, 0.0])),
    min_size=DIM,
    max_size=DIM,
)


@given(some_weights, answers, slopes, st.floats(0, 1))
def test_the_laws_for_any_success_and_any_slope_at_all(weights, given_answers, slope, limit):
    calls = []

    def knows(params):
        calls.append(params)
        return given_answers[len(calls) % len(given_answers)]

    old = old_of(weights, known=0.25)
    steep = torch.tensor(slope, dtype=torch.float64)
    found = hold(average, knows, lambda params: steep, weights, limits=limits(limit), old=old)
    assert len(calls) <= 6 * 6, "six lengths of the step, each looked at and corrected five times"
    if found is old:
        return
    assert found.known <= limit
    assert found.params.isfinite().all()
    assert torch.equal(found.weights, found.step * weights)
    assert found.step in {0.5**times for times in range(6)}
    made = average(found.weights)
    assert float((found.params - made).norm()) == pytest.approx(found.corrected, abs=1e-9)
    assert found.corrected <= float((made - START).norm()) * (1 + 1e-9)


@given(some_weights, st.floats(0, 1))
def test_nothing_is_changed_where_the_average_will_do(weights, limit):
    def never(_):
        raise AssertionError("a slope was asked for")

    old = old_of(weights)
    found = hold(average, lambda params: limit, never, weights, limits=limits(limit), old=old)
    if not (weights > 0).any():
        assert found is old
        return
    assert torch.equal(found.params, average(weights))
    assert (found.step, found.corrected) == (1, 0)


@given(some_weights, st.sampled_from([math.nan, math.inf, 1.0]))
def test_where_nothing_will_do_the_old_model_stays(weights, answer):
    old = old_of(weights)
    found = hold(
        average, lambda params: answer, torch.ones_like, weights, limits=limits(0.9), old=old
    )
    assert found is old


@pytest.mark.parametrize("count", [1, 4])
def test_where_nobody_has_weight_the_old_model_stays_and_no_model_is_made(count):
    def never(_):
        raise AssertionError("a model was made or looked at")

    nobody = torch.zeros(count, dtype=torch.float64)
    old = old_of(nobody)
    assert hold(never, never, never, nobody, limits=limits(1.0), old=old) is old


def test_a_correction_is_the_shortest_way():
    """A straight S: its slope is the direction, and one step arrives."""
    weights, direction = torch.ones(1, dtype=torch.float64), torch.tensor([0.3, 0.4, 0.0])
    made, direction = average(weights), direction.double()
    found = hold(
        average,
        lambda params: float(params @ direction) + 0.5,
        lambda params: direction,
        weights,
        limits=limits(0.6, aim=1.0),
        old=old_of(weights),
    )
    too_much = float(made @ direction) + 0.5 - 0.6
    assert too_much > 0
    assert found.corrected == pytest.approx(too_much / 0.5)
    assert found.params.tolist() == pytest.approx((made - too_much / 0.25 * direction).tolist())
    assert found.step == 1


def test_a_model_without_a_slope_is_shortened():
    weights = torch.ones(1, dtype=torch.float64)
    found = hold(
        average,
        lambda params: float(params.norm()),
        torch.zeros_like,
        weights,
        limits=limits(0.3 * float(average(weights).norm())),
        old=old_of(weights),
    )
    assert (found.step, found.corrected) == (0.25, 0)


@pytest.mark.parametrize("halvings", [0, 1, 3])
def test_how_often_a_step_is_halved_is_a_choice(halvings):
    weights = torch.ones(1, dtype=torch.float64)
    old, whole = old_of(weights), float(average(weights).norm())

    def held(limit):
        chosen = limits(limit, halvings=halvings)
        return hold(
            average,
            lambda p: float(p.norm()) / whole,
            torch.zeros_like,
            weights,
            limits=chosen,
            old=old,
        )

    just = 0.5**halvings * (1 + 1e-9)
    assert held(just).step == 0.5**halvings
    assert held(just / 2) is old
