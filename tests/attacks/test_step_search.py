"""The search for a step, against one that tries every step of a fine grid."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datadefense.attacks.step_search import best_step, grid, largest_step

LONGEST = 30.0
FINE = [LONGEST / 1.01**place for place in range(860)]
"""Down to less than the last of the grid."""


class Counted:
    """A function that knows how often it was asked."""

    def __init__(self, function):
        self.function, self.asked = function, []

    def __call__(self, step):
        self.asked.append(step)
        return self.function(step)


def slow_largest(survives):
    return max((step for step in FINE if survives(step)), default=0.0)


def slow_best(loss):
    return min([*reversed(FINE), 0.0], key=loss)


@given(st.floats(-7, 5).map(math.exp))
def test_the_largest_is_the_slow_twins_to_a_twentieth(border):
    survives = Counted(lambda step: step <= border)
    found = largest_step(survives, LONGEST)
    wanted = slow_largest(survives.function)
    assert found <= border
    if border >= LONGEST:
        assert found == wanted == LONGEST
    elif border < grid(LONGEST)[-1]:
        assert found == 0.0
    else:
        assert found <= wanted * 1.01
        assert border < found * 4 ** (1 / 32) * (1 + 1e-9)


@given(st.floats(-7, 5).map(math.exp))
def test_it_takes_twelve_tries(border):
    survives = Counted(lambda step: step <= border)
    largest_step(survives, LONGEST)
    assert len(survives.asked) <= 12
    assert max(survives.asked) <= LONGEST


@given(st.floats(-4, 3.4).map(math.exp), st.floats(0.2, 3))
def test_the_best_is_the_slow_twins_to_a_fifth(valley, steepness):
    """One valley in the logarithm of the step, and a loss without a step that is no better."""

    def loss(step):
        return 100.0 if step == 0 else steepness * abs(math.log(step / valley))

    counted = Counted(loss)
    found, wanted = best_step(counted, LONGEST), slow_best(loss)
    assert wanted == pytest.approx(valley, rel=0.011)
    assert max(found / wanted, wanted / found) < 4 ** (1 / 8) * 1.011
    assert len(counted.asked) <= 14
    assert max(counted.asked) <= LONGEST


def test_of_equal_steps_the_shortest_is_taken():
    """As where the median is what honest clients send, however far the attackers go."""
    assert best_step(lambda step: 1.0 if step < 2 else 0.5, LONGEST) == pytest.approx(2, rel=0.2)


@pytest.mark.parametrize("loss", [lambda step: step, lambda step: 1.0, lambda step: math.nan])
def test_a_step_that_makes_nothing_better_is_not_taken(loss):
    assert best_step(loss, LONGEST) == 0.0


def test_what_is_not_a_number_is_passed_over():
    assert best_step(lambda step: math.nan if step > 3 else -step, LONGEST) == pytest.approx(
        3, rel=0.2
    )


def test_the_grid_goes_down_by_quarters():
    steps = grid(LONGEST)
    assert steps[0] == LONGEST
    assert all(4 * after == before for before, after in pairwise(steps))
