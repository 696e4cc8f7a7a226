import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round, rounds, update_of

from datadefense import Server
from datadefense.core.settings import SettingsError
from datadefense.defenses import Rlr, TooFewClientsError
from datadefense.kernels.signs import sign_votes


@given(rounds(), st.data())
def test_the_twin(round, data):
    f = data.draw(st.integers(0, (round.num_clients - 1) // 2))
    result = Rlr(f).aggregate(None, round, Server())
    rows, counts = round.updates.tolist(), round.num_examples.tolist()
    expected = oracles.rlr(rows, counts, 2 * f + 1)
    assert update_of(result, round).tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("share", "clients", "theta"), [(0.4, 10, 4), (0.3, 10, 3), (0.31, 10, 4), (1.0, 7, 7)]
)
def test_the_threshold_as_a_share(share, clients, theta):
    assert Rlr(threshold=share).least_agreement(clients) == theta


def test_a_disputed_coordinate_is_turned_and_counted():
    rows = torch.tensor([[1.0, 1.0], [1.0, -1.0], [1.0, 1.0], [1.0, -3.0], [1.0, 1.0]])
    round = as_round(rows)
    result = Rlr().aggregate(None, round, Server())
    assert update_of(result, round).tolist() == pytest.approx([1.0, 0.2])
    assert result.report == {"threshold": 3, "turned": 0.5, "caution": "theta=3 is above n/2=2.5"}


def test_votes_of_wide_matrices():
    rows = torch.randn(3, 200_001, generator=torch.Generator().manual_seed(0))
    assert torch.equal(sign_votes(rows), rows.sign().sum(0))


def test_too_few_clients():
    with pytest.raises(TooFewClientsError, match=r"rlr needs n >= 2f \+ 1, got n=2, f=1"):
        Rlr().check_clients(2)
    round = as_round(torch.ones(2, 3))
    result = Rlr().aggregate(None, round, Server())
    assert result.report["fallback"].endswith("kept the model")
    assert torch.equal(result.params, round.global_params)


def test_bad_settings():
    with pytest.raises(SettingsError, match="threshold must be <= 1, got 8"):
        Rlr(threshold=8.0)
    with pytest.raises(SettingsError, match="num_malicious must be >= 0, got -1"):
        Rlr(num_malicious=-1)
