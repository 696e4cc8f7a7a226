from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round, matrices, update_of

from datadefense import Server
from datadefense.core.needs import Need
from datadefense.core.settings import SettingsError
from datadefense.defenses import FoolsGold
from datadefense.defenses.foolsgold import FoolsGoldState


def play(defense, matrices_in_order, ids=None):
    """Return the last result and its round."""
    state = FoolsGoldState()
    for matrix in matrices_in_order:
        round = as_round(matrix)
        round = round if ids is None else replace(round, client_ids=ids)
        result = defense.aggregate(state, round, Server())
        state = result.state
    return result, round


@given(matrices(), st.integers(1, 3))
def test_the_twin_with_a_history(rows, times):
    result, round = play(FoolsGold(), [rows.roll(k, 1) for k in range(times)])
    total = sum(rows.double().roll(k, 1) for k in range(times)).tolist()
    rates = oracles.foolsgold_rates(total)
    assert result.evidence["rate"].tolist() == pytest.approx(rates, abs=1e-6)
    expected = oracles.mean_of(round.updates.tolist(), rates)
    assert update_of(result, round).tolist() == pytest.approx(expected, abs=1e-5)


def test_sybils_lose_their_weight_and_hear_why():
    draw = torch.Generator().manual_seed(0)
    rows = torch.randn(8, 400, generator=draw)
    rows[5:] = rows[5] + 0.05 * rows[5:]
    result, _ = play(FoolsGold(), [rows])
    assert result.weights[5:].sum() == 0
    assert result.weights[:5].tolist() == pytest.approx([0.2] * 5)
    assert str(result.reasons[6]).startswith("moves like another client: similarity 0.99")


def test_it_is_the_history_that_counts_not_the_round():
    """Alike in this round, unlike over both: nobody is blamed; the other way round, somebody is."""
    draw = torch.Generator().manual_seed(1)
    apart, together = torch.randn(2, 5, 300, generator=draw)
    together[3:] = together[3]
    result, _ = play(FoolsGold(), [3 * apart, together])
    assert (result.weights > 0).all()
    result, _ = play(FoolsGold(), [3 * together, apart])
    assert result.weights[3:].sum() == 0


def test_clients_are_known_by_their_ids_and_forgotten_one_day():
    rows = torch.eye(3)
    result, _ = play(FoolsGold(remember=4), [rows, rows], ids=(7, "b", 9))
    assert result.state.history[7].tolist() == [2.0, 0.0, 0.0]
    later = replace(as_round(rows[:2]), client_ids=("new", "b"))
    after = FoolsGold(remember=3).aggregate(result.state, later, Server()).state
    assert list(after.history) == [9, "new", "b"]
    assert after.history["b"].tolist() == [0.0, 3.0, 0.0]
    assert FoolsGold.needs == Need.CLIENT_IDENTITY


def test_all_alike_are_nobodys_sybils():
    result, _ = play(FoolsGold(), [torch.ones(4, 3), torch.ones(4, 3)])
    assert result.weights.tolist() == [0.25] * 4
    assert result.reasons == [None] * 4


def test_a_history_of_the_greatest_numbers_stays_finite():
    rows = torch.full((3, 4), 3e38)
    result, _ = play(FoolsGold(), [rows, rows])
    assert all(kept.isfinite().all() for kept in result.state.history.values())
    assert result.weights.isfinite().all()


def test_bad_settings():
    with pytest.raises(SettingsError, match="remember must be >= 1, got 0"):
        FoolsGold(remember=0)
