import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles

from datadefense.defenses.datadefense.usual_distance import remembered

MEMORY = 9

distance = st.one_of(st.just(0.0), st.floats(1e-30, 1e30))


@given(st.lists(st.lists(distance, max_size=7), max_size=2 * MEMORY))
def test_against_loops(rounds):
    past, expected = (), []
    for blameless in rounds:
        past = remembered(past, torch.tensor(blameless, dtype=torch.float64), MEMORY)
        moved = [far for far in blameless if far > 0]
        if moved:
            expected = [*expected, oracles.lower_median(moved)][-MEMORY:]
        assert past == tuple(expected)
        assert all(0 < far < math.inf for far in past)


def test_a_round_in_which_nobody_moved_or_nobody_is_blameless_is_not_remembered():
    past = (1.0, 2.0)
    for nobody in (torch.zeros(3), torch.zeros(0)):
        assert remembered(past, nobody.double(), MEMORY) == past


def test_a_minority_is_not_the_measure():
    for strange in (1e-9, 1e9):
        crowd = torch.tensor([1.0, 1.1, 1.2, strange, strange], dtype=torch.float64)
        assert 1 <= remembered((), crowd, MEMORY)[0] <= 1.2


@pytest.mark.parametrize("memory", [1, 4, MEMORY])
def test_what_is_remembered_is_bounded(memory):
    past = ()
    for far in range(1, 3 * memory + 1):
        past = remembered(past, torch.tensor([float(far)], dtype=torch.float64), memory)
    assert past == tuple(float(far) for far in range(2 * memory + 1, 3 * memory + 1))
