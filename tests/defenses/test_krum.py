import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round, rounds, update_of

from datadefense import Server
from datadefense.core.settings import SettingsError
from datadefense.defenses import Krum, MultiKrum, TooFewClientsError
from datadefense.defenses.krum import krum_scores
from datadefense.kernels.distances import squared_distances


@given(rounds(min_clients=2), st.integers(0, 4))
def test_scores(round, f):
    scores = krum_scores(squared_distances(round.updates), f)
    assert scores.tolist() == pytest.approx(oracles.krum_scores(round.updates.tolist(), f))


@given(rounds(min_clients=3), st.data())
def test_krum_and_its_ties(round, data):
    f = data.draw(st.integers(0, round.num_clients - 3))
    result = Krum(f).aggregate(None, round, Server())
    rows = round.updates.tolist()
    best = oracles.first_lowest(oracles.krum_scores(rows, f))
    assert result.weights.argmax() == best
    assert update_of(result, round).tolist() == pytest.approx(rows[best], abs=1e-6)


@given(rounds(min_clients=3), st.data())
def test_multi_krum(round, data):
    f = data.draw(st.integers(0, round.num_clients - 3))
    rows, counts = round.updates.tolist(), round.num_examples.tolist()
    chosen = oracles.multi_krum_chosen(rows, f)
    for weighting, weights in (("uniform", None), ("examples", [counts[i] for i in chosen])):
        result = MultiKrum(f, weighting).aggregate(None, round, Server())
        assert sorted(result.weights.nonzero().flatten().tolist()) == sorted(chosen)
        expected = oracles.mean_of([rows[i] for i in chosen], weights)
        assert update_of(result, round).tolist() == pytest.approx(expected, abs=1e-5)


def test_krum_leaves_the_outlier():
    rows = torch.randn(10, 50, generator=torch.Generator().manual_seed(0))
    rows[3] += 10
    result = Krum().aggregate(None, as_round(rows), Server())
    assert result.weights[3] == 0
    assert result.evidence["score"].argmax() == 3


def test_clones_tie_and_the_first_wins():
    rows = torch.randn(8, 5000, generator=torch.Generator().manual_seed(0))
    rows[[6, 2, 4]] = rows[5].clone()
    assert Krum().aggregate(None, as_round(rows), Server()).weights.argmax() == 2


@pytest.mark.parametrize("make", [Krum, MultiKrum])
def test_too_few_clients(make):
    with pytest.raises(TooFewClientsError, match=r"krum needs n >= f \+ 3, got n=4, f=2"):
        make(num_malicious=2).check_clients(4)
    make(num_malicious=2).check_clients(5)
    rows = torch.tensor([[0.0], [1.0], [50.0]])
    three = make(num_malicious=1).aggregate(None, as_round(rows), Server())
    assert three.report["fallback"].endswith(
        "needs n >= f + 3, got n=3, f=1: took the median of each coordinate"
    )
    assert update_of(three, as_round(rows)).tolist() == [1.0]
    two = make(num_malicious=1).aggregate(None, as_round(rows[:2]), Server())
    assert two.report["fallback"].endswith("got n=2, f=1: kept the model")
    assert torch.equal(two.params, as_round(rows[:2]).global_params)


@pytest.mark.parametrize("value", [-1, 1.5, True, "2"])
def test_bad_settings(value):
    with pytest.raises(SettingsError, match="num_malicious must be"):
        Krum(num_malicious=value)
    with pytest.raises(SettingsError, match="weighting must be one of uniform, examples"):
        MultiKrum(weighting="votes")
