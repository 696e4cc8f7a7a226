"""Min-Max and Min-Sum, against a search over gamma that measures every distance."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.attacks.views import assert_stands_all, guessing_view, normal, view_of
from tests.strategies import matrices

from datadefense.attacks.deviation import DIRECTIONS
from datadefense.attacks.min_max import MinMax
from datadefense.attacks.min_sum import MinSum
from datadefense.attacks.untargeted import LEVELS
from datadefense.core.settings import SettingsError

ALL = [MinMax(direction=one) for one in DIRECTIONS] + [
    MinSum(direction=one, bound=bound) for one in DIRECTIONS for bound in ("max", "min")
]


def square(one, two):
    return sum((x - y) ** 2 for x, y in zip(one, two, strict=True))


def middle_and_way(honest, direction):
    """The mean and p, coordinate by coordinate."""
    rows = len(honest)
    columns = list(zip(*honest, strict=True))
    middle = [sum(column) / rows for column in columns]
    if direction == "sign":
        return middle, [(x > 0) - (x < 0) for x in middle]
    if direction == "unit":
        length = math.sqrt(sum(x * x for x in middle))
        return middle, [x / length if length else 0.0 for x in middle]
    if rows == 1:
        return middle, [0.0 for _ in middle]
    spread = [
        math.sqrt(sum((x - m) ** 2 for x in column) / (rows - 1))
        for column, m in zip(columns, middle, strict=True)
    ]
    return middle, spread


def close_enough(attack, honest, sent):
    """Whether an update keeps to the attack's bound."""
    sums = [sum(square(one, other) for other in honest) for one in honest]
    if isinstance(attack, MinMax):
        widest = max(square(one, other) for one in honest for other in honest)
        return max(square(sent, one) for one in honest) <= widest * (1 + 1e-9)
    bound = max(sums) if attack.bound == "max" else min(sums)
    return sum(square(sent, one) for one in honest) <= bound * (1 + 1e-9)


def slow_gamma(attack, honest):
    """Double gamma while it is within the bound, then halve the gap."""
    middle, way = middle_and_way(honest, attack.direction)
    if not any(way):
        return 0.0, middle, way

    def fits(gamma):
        return close_enough(
            attack, honest, [m - gamma * p for m, p in zip(middle, way, strict=True)]
        )

    good, bad = 0.0, 1e-3
    while fits(bad):
        good, bad = bad, 2 * bad
    for _ in range(60):
        half = (good + bad) / 2
        good, bad = (half, bad) if fits(half) else (good, half)
    return good, middle, way


@given(matrices(max_clients=7, max_dim=5), st.sampled_from(ALL))
def test_the_solution_is_what_a_search_finds(honest, attack):
    plot = attack.agree(view_of(honest))
    gamma, middle, way = slow_gamma(attack, honest.tolist())
    assert plot.facts["gamma"] == pytest.approx(gamma, rel=1e-4, abs=2e-3)
    for row in plot.updates.tolist():
        expected = [m - gamma * p for m, p in zip(middle, way, strict=True)]
        assert row == pytest.approx(expected, rel=1e-3, abs=1e-2)


@pytest.mark.parametrize("attack", ALL, ids=repr)
def test_in_many_dimensions_the_bound_is_met_exactly(attack):
    honest = normal(6) + 0.3
    (sent, _) = attack.agree(view_of(honest)).updates.double()
    rows = honest.double()
    distances = torch.cdist(rows, rows).square()
    if isinstance(attack, MinMax):
        reached, bound = (rows - sent).square().sum(1).max(), distances.max()
    else:
        sums = distances.sum(1)
        reached = (rows - sent).square().sum()
        bound = sums.max() if attack.bound == "max" else sums.min()
    assert float(reached) == pytest.approx(float(bound), rel=1e-5)
    assert float((sent - rows.mean(0)) @ rows.mean(0)) < 0


@pytest.mark.parametrize("kind", [MinMax, MinSum])
def test_without_knowledge_own_trainings_stand_for_the_honest(kind):
    rows = normal(6)
    seen = kind().agree(view_of(rows))
    guessed = kind(knowledge="nothing").agree(guessing_view(rows))
    assert torch.equal(seen.updates, guessed.updates)
    assert [kind(knowledge="nothing").honest_trainings(n) for n in (0, 1, 5)] == [2, 2, 5]
    assert kind().honest_trainings(5) == 0


@pytest.mark.parametrize("knowledge", LEVELS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_it_stands_whatever_the_round_is(direction, knowledge):
    assert_stands_all(MinMax(direction=direction, knowledge=knowledge))
    for bound in ("max", "min"):
        assert_stands_all(MinSum(direction=direction, bound=bound, knowledge=knowledge))


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (MinMax, {"direction": "up"}, "direction must be one of std, unit, sign"),
        (MinMax, {"knowledge": "all"}, "knowledge must be one of updates, nothing"),
        (MinSum, {"direction": "up"}, "direction must be one of"),
        (MinSum, {"bound": "mean"}, "bound must be one of max, min"),
    ],
)
def test_bad_settings(kind, settings, message):
    with pytest.raises(SettingsError, match=message):
        kind(**settings)
