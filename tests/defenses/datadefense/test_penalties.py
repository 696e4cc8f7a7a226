import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles

from datadefense.defenses.datadefense.client_losses import WORST
from datadefense.defenses.datadefense.penalties import (
    NAMES,
    FreeDistance,
    Measured,
    lower_quartile,
    moved_far,
    penalties,
    without_rises,
)

FREE = FreeDistance(of_round=2.0, least=1.5, most=3.0)
EXCUSES = (2.0, 0.25)


def of(case, floor=0.1, excuses=EXCUSES, free=FREE):
    """The penalties with the depenalties of the learned form."""
    return penalties(
        case, floor=floor, excuse_clean=excuses[0], excuse_poison=excuses[1], free=free
    )


def cut(losses, released, most_rise=0.5, floor=0.1):
    return without_rises(losses, released, most_rise=most_rise, floor=floor)


def measured(clean, poison, distance, released=(1.0, 4.0), usual=math.inf):
    columns = (torch.tensor(part, dtype=torch.float64) for part in (clean, poison, distance))
    return Measured(*columns, *released, usual)


losses = st.one_of(st.floats(0, 20), st.just(0.0), st.just(WORST))
distances = st.one_of(st.floats(1e-6, 100), st.just(0.0), st.just(1e30))


@st.composite
def rounds(draw):
    count = draw(st.integers(1, 9))
    columns = [
        draw(st.lists(kind, min_size=count, max_size=count)) for kind in (losses, losses, distances)
    ]
    usual = draw(st.one_of(st.just(math.inf), st.just(0.0), st.floats(1e-3, 50)))
    return (*columns, (draw(losses), draw(losses)), usual)


@given(rounds())
def test_against_the_formula(case):
    result = of(measured(*case))
    assert result.dtype == torch.float64
    assert result.isfinite().all()
    for row, expected in zip(result.tolist(), oracles.penalties(*case), strict=True):
        assert row == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(rounds())
def test_no_penalty_is_negative(case):
    assert (of(measured(*case)) >= 0).all()


@given(rounds(), st.randoms(use_true_random=False))
def test_the_order_of_clients_does_not_matter(case, random):
    clean, poison, distance, *rest = case
    order = list(range(len(clean)))
    random.shuffle(order)
    shuffled = ([column[j] for j in order] for column in (clean, poison, distance))
    plain = of(measured(*case))
    assert torch.equal(of(measured(*shuffled, *rest)), plain[order])


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=12))
def test_a_quarter_of_the_others_is_below_the_lower_quartile(values):
    result = float(lower_quartile(torch.tensor(values, dtype=torch.float64)))
    assert result == oracles.quarter_below(values)
    assert sum(value < result for value in values) <= (len(values) - 1) // 4


def test_a_model_that_is_better_than_the_released_one_has_no_penalty():
    """Lower loss on clean points, higher on poisoned ones, and hardly moved."""
    result = of(measured([0.1] + [1.0] * 5, [9.0] + [4.0] * 5, [0.01] + [1.0] * 5))
    assert result[0].tolist() == [0, 0, 0]


def test_a_blown_up_model_earns_nothing():
    """Its loss on poisoned points is huge, which the paper's features reward."""
    result = of(measured([1.0] * 5 + [WORST], [4.0] * 5 + [WORST], [1.0] * 5 + [1e9]))
    worse, learned, far = result[-1].tolist()
    assert worse > 1e5
    assert learned == 0
    assert far > 1e8
    assert (result[:-1] == 0).all()


def test_an_attacker_who_learned_the_poison_is_seen_and_the_others_are_not():
    result = of(measured([1.0] * 6, [4.0] * 5 + [0.1], [1.0] * 6))
    assert dict(zip(NAMES, result[-1].tolist(), strict=True)) == pytest.approx(
        {"worse_on_clean": 0, "learned_poison": 3.9 / 4.1, "moved_far": 0}
    )
    assert (result[:-1] == 0).all()


@pytest.mark.parametrize(
    ("clean", "poison", "left"),
    [
        pytest.param(2.1, 4.0, [0, 0, 0], id="a little worse"),
        pytest.param(11.0, 4.0, [10 / 1.1 - EXCUSES[0], 0, 0], id="much worse"),
        pytest.param(1.0, 3.5, [0, 0, 0], id="learned a little"),
        pytest.param(1.0, 0.0, [0, 4 / 4.1 - EXCUSES[1], 0], id="learned all"),
    ],
)
def test_what_the_whole_round_shares_is_excused_up_to_a_limit(clean, poison, left):
    result = of(measured([clean] * 4, [poison] * 4, [1.0] * 4))
    for row in result.tolist():
        assert row == pytest.approx(left)


@pytest.mark.parametrize("attackers", range(9))
def test_attackers_below_three_in_four_do_not_make_their_own_excuse(attackers):
    poison = [0.0] * attackers + [4.0] * (12 - attackers)
    result = of(measured([1.0] * 12, poison, [1.0] * 12))
    assert result[:attackers, 1].tolist() == pytest.approx([4 / 4.1] * attackers)
    assert (result[attackers:] == 0).all()


def test_beyond_that_the_excuse_is_capped():
    result = of(measured([1.0] * 12, [0.0] * 11 + [4.0], [1.0] * 12))
    assert result[:11, 1].tolist() == pytest.approx([4 / 4.1 - EXCUSES[1]] * 11)


@pytest.mark.parametrize("usual", [math.inf, 0.0, 1.0])
def test_nobody_moved(usual):
    result = of(measured([1.0] * 3, [4.0] * 3, [0.0] * 3, usual=usual))
    assert (result == 0).all()


def test_who_moves_among_those_who_did_not_is_a_stranger():
    result = of(measured([1.0] * 4, [4.0] * 4, [0.0, 0.0, 0.0, 1e-9]))
    assert result[:, 2].tolist() == [0, 0, 0, 1e6]


def test_a_whole_round_that_moves_far_is_measured_by_the_past():
    result = of(measured([1.0] * 3, [4.0] * 3, [60.0] * 3, usual=1.0))
    assert result[:, 2].tolist() == pytest.approx([19.0] * 3)


def test_one_client_is_its_own_round():
    fine = of(measured([2.0], [3.5], [7.0]))
    assert fine.tolist() == [[0, 0, 0]]
    bad = of(measured([WORST], [0.0], [7.0], usual=0.07))
    assert (bad[0] > 0).all()


@given(
    st.lists(st.tuples(losses, st.lists(losses, min_size=3, max_size=3)), min_size=1, max_size=9)
)
def test_without_rises_against_the_formula(examples):
    released = [old for old, _ in examples]
    rows = oracles.columns([new for _, new in examples])
    found = cut(*(torch.tensor(x, dtype=torch.float64) for x in (rows, released)))
    expected = [oracles.mean_without_rises(row, released) for row in rows]
    assert found.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert found.dtype == torch.float64


def test_learning_half_of_the_poison_cannot_be_hidden_by_the_other_half():
    """The mean loss is the released one's, and yet there is a penalty."""
    released = torch.full((10,), 4.0)
    halves = torch.tensor([[0.0] * 5 + [8.0] * 5, [4.0] * 10])
    poison = cut(halves, released)
    assert poison.tolist() == pytest.approx([(4 + 4.1 / 2) / 2, 4.0])
    found = of(measured([1.0, 1.0], poison.tolist(), [1.0, 1.0]))
    assert found[0, 1] > 0.2
    assert found[1, 1] == 0


def test_without_poison_there_is_no_loss():
    assert cut(torch.zeros(3, 0), torch.zeros(0)).tolist() == [0, 0, 0]


def test_what_is_excused_added_and_free_is_a_choice():
    case = measured([2.1] * 4, [3.5] * 4, [1.0, 1.0, 1.0, 4.0])
    assert of(case)[0].tolist() == [0, 0, 0]
    worse, learned, _ = of(case, excuses=(0, 0))[0].tolist()
    assert (worse, learned) == pytest.approx((1.1 / 1.1, 0.5 / 4.1))
    worse, learned, _ = of(case, floor=1.0, excuses=(0, 0))[0].tolist()
    assert (worse, learned) == pytest.approx((1.1 / 2, 0.5 / 5))
    assert float(
        moved_far(case.distance, math.inf, FreeDistance(1.0, 1.5, 3.0))[-1]
    ) == pytest.approx(3)
    later = measured([1.0] * 2, [4.0] * 2, [1.0, 100.0], usual=10.0)
    assert float(moved_far(later.distance, 10.0, FreeDistance(2.0, 2.5, 3.0))[-1]) == pytest.approx(
        3
    )
    assert float(
        moved_far(later.distance, 10.0, FreeDistance(200.0, 1.0, 5.0))[-1]
    ) == pytest.approx(1)


def test_how_far_a_loss_may_rise_is_a_choice():
    released, losses = torch.tensor([1.0, 1.0]), torch.tensor([[0.0, 9.0]])
    assert cut(losses, released, most_rise=0.0).tolist() == [0.5]
    assert cut(losses, released, most_rise=1e9).tolist() == [4.5]
    assert cut(losses, released, most_rise=1.0, floor=1.0).tolist() == [1.5]
