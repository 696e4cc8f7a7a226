import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round, rounds, update_of

from datadefense import Server
from datadefense.defenses import Median, TooFewClientsError, TrimmedMean


@given(rounds(max_clients=20))
def test_median(round):
    result = Median().aggregate(None, round, Server())
    expected = oracles.median_of(round.updates.tolist())
    assert update_of(result, round).tolist() == pytest.approx(expected, abs=1e-6)
    assert result.weights is None


@given(rounds(max_clients=20), st.data())
def test_trimmed_mean(round, data):
    f = data.draw(st.integers(0, (round.num_clients - 1) // 2))
    result = TrimmedMean(f).aggregate(None, round, Server())
    expected = oracles.trimmed_mean_of(round.updates.tolist(), f)
    assert update_of(result, round).tolist() == pytest.approx(expected, abs=1e-5)


def test_an_even_number_has_two_in_the_middle():
    round = as_round(torch.tensor([[1.0], [2.0], [4.0], [100.0]]))
    assert update_of(Median().aggregate(None, round, Server()), round).tolist() == [3.0]


def test_too_few_clients_keep_the_model():
    with pytest.raises(TooFewClientsError, match=r"trimmed-mean needs n >= 2f \+ 1, got n=4, f=2"):
        TrimmedMean(2).check_clients(4)
    round = as_round(torch.tensor([[1.0], [2.0]]))
    result = TrimmedMean().aggregate(None, round, Server())
    assert torch.equal(result.params, round.global_params)
    assert result.report["fallback"].endswith("kept the model")
    assert result.weights.tolist() == [0, 0]
