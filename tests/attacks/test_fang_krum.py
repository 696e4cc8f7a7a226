"""Fang's attack on Krum, against Krum itself on every step of a fine grid."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.attacks.situations import update_of
from tests.attacks.views import assert_stands_all, guessing_view, normal, view_of
from tests.strategies import as_round, matrices

from datadefense.attacks.fang_krum import LEAST, FangKrum
from datadefense.attacks.untargeted import LEVELS
from datadefense.core.settings import SettingsError
from datadefense.defenses.krum import Krum


def krum_score(rows, place, assumed):
    distances = sorted(
        sum((x - y) ** 2 for x, y in zip(rows[place], row, strict=True))
        for other, row in enumerate(rows)
        if other != place
    )
    return sum(distances[: max(1, len(rows) - assumed - 2)])


def picked(honest, attackers, assumed, step):
    """Whether Krum picks an attacker if all of them send the step against the honest way."""
    signs = [(sum(c) > 0) - (sum(c) < 0) for c in zip(*honest, strict=True)]
    rows = [*honest, *([[-step * s for s in signs]] * attackers)]
    found = [krum_score(rows, place, assumed) for place in range(len(rows))]
    return min(found[len(honest) :]) < min(found[: len(honest)]) - 1e-9


def bound(honest, attackers):
    columns = zip(*honest, strict=True)
    dim = sum(sum(column) != 0 for column in columns)
    if not dim:
        return 0.0
    least = 0.0
    if len(honest) > 1:
        least = min(krum_score(honest, place, 0) for place in range(len(honest)))
    clients = len(honest) + attackers
    longest = max(math.sqrt(sum(x * x for x in row)) for row in honest)
    return math.sqrt(least / (max(1, clients - 2 * attackers - 1) * dim)) + longest / dim**0.5


@given(matrices(max_clients=7, max_dim=5), st.integers(1, 4), st.integers(0, 3))
def test_the_step_is_one_that_krum_picks_and_its_double_is_none(matrix, attackers, assumed):
    honest = matrix.tolist()
    view = view_of(matrix, attackers=attackers)
    plot = FangKrum(epsilon=0.0, num_malicious=assumed).agree(view)
    step, highest = plot.facts["step"], bound(honest, attackers)
    signs = [(sum(c) > 0) - (sum(c) < 0) for c in zip(*honest, strict=True)]
    for row in plot.updates.tolist():
        assert row == pytest.approx([-step * s for s in signs], abs=1e-6)
    if highest == 0:
        assert step == 0
        return
    assert LEAST / 2 <= step <= highest * (1 + 1e-9) or step == highest
    tried = [highest / 2**place for place in range(60) if highest / 2**place >= LEAST]
    works = [one for one in tried if picked(honest, attackers, assumed, one)]
    if plot.facts["picked"]:
        assert picked(honest, attackers, assumed, step * (1 - 1e-9)) or not works
        assert not works or step >= max(works) * (1 - 1e-9)
    else:
        assert not works


@pytest.mark.parametrize("attackers", [1, 2, 4])
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.5])
def test_krum_itself_picks_what_is_sent(attackers, epsilon):
    honest = normal(8) + 0.05
    own = torch.nn.functional.normalize(normal(attackers, seed=4))
    plot = FangKrum(epsilon=epsilon).agree(view_of(honest, own))
    assert plot.facts["picked"] == 1
    updates = torch.cat([honest, plot.updates])
    result = Krum(num_malicious=attackers).combine(as_round(updates))
    assert float(result.weights[8:].sum()) == 1
    assert float(updates[int(result.weights.argmax())] @ honest.mean(0)) < 0
    apart = (plot.updates - plot.updates[0]).norm(dim=1)
    assert apart.tolist() == pytest.approx([0.0] + [epsilon] * (attackers - 1), abs=1e-4)


def test_a_step_a_little_longer_is_not_picked():
    honest = normal(8) + 0.05
    plot = FangKrum(epsilon=0.0).agree(view_of(honest, attackers=1))
    longer = torch.cat([honest, 1.01 * plot.updates])
    assert float(Krum().combine(as_round(longer)).weights[8]) == 0


def test_where_krum_picks_nothing_the_last_step_is_sent():
    honest = torch.tensor([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.001]])
    plot = FangKrum(epsilon=0.0).agree(view_of(honest, attackers=1))
    assert plot.facts["picked"] == 0
    assert LEAST <= plot.facts["step"] < 2 * LEAST


def test_without_knowledge_own_trainings_stand_for_the_honest():
    rows, own = normal(6), torch.nn.functional.normalize(normal(2, seed=4))
    seen = FangKrum().agree(view_of(rows, own))
    guessed = FangKrum(knowledge="nothing").agree(guessing_view(rows, own))
    assert torch.equal(seen.updates, guessed.updates)


def test_its_noise_has_a_length_of_one():
    assert float(update_of(FangKrum()).norm()) == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("knowledge", LEVELS)
def test_it_stands_whatever_the_round_is(knowledge):
    def own(attackers, rows):
        return torch.nn.functional.normalize(normal(attackers, rows.shape[1], dtype=rows.dtype))

    assert_stands_all(FangKrum(knowledge=knowledge), own)
    assert_stands_all(FangKrum(knowledge=knowledge, num_malicious=40))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": -1.0}, "epsilon must be >= 0"),
        ({"num_malicious": -1}, "num_malicious must be >= 0"),
        ({"knowledge": "all"}, "knowledge must be one of"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(SettingsError, match=message):
        FangKrum(**settings)
