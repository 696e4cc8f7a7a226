import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round, rounds

from datadefense import Server, create
from datadefense.preaggregators import Nnm


@given(rounds(min_clients=5), st.integers(0, 2))
def test_it_is_the_slow_one(round, malicious):
    """Numbers on a grid: ties are ties for both."""
    made = Nnm(num_malicious=malicious).prepare(None, round, Server())
    wanted = torch.tensor(oracles.nnm_rows(round.updates.tolist(), malicious))
    assert torch.allclose(made.round.updates, wanted, atol=1e-5)
    assert torch.allclose(made.origin.sum(1), torch.ones(len(wanted)).double())


def test_honest_rows_do_not_take_in_a_far_attacker():
    updates = torch.tensor([[1.0], [1.1], [0.9], [1e38]])
    made = Nnm(num_malicious=1).prepare(None, as_round(updates, counts=[2, 4, 6, 1000]), Server())
    assert torch.allclose(made.round.updates[:3], torch.tensor(1.0))
    assert made.evidence["rows"].tolist() == [4, 4, 3, 1]
    assert made.round.num_examples.tolist()[:3] == [4, 4, 4]
    assert made.round.client_ids == (0, 1, 2, 3)


def test_the_greatest_numbers_stay_finite():
    updates = torch.full((7, 5), torch.finfo(torch.float32).max)
    made = Nnm(num_malicious=0).prepare(None, as_round(updates), Server())
    assert bool(made.round.updates.isfinite().all())


def test_too_few_clients_are_a_fallback_in_a_run():
    assert Nnm(num_malicious=2).shortage(4) == "nnm needs n >= 2f + 1, got n=4, f=2"
    defense = create("nnm+fedavg", {"num_malicious": 1})
    round = as_round([[1.0], [1e20]])
    result = defense.aggregate(defense.init(Server(), round.global_params), round, Server())
    assert result.report["fallback"] == "nnm needs n >= 2f + 1, got n=2, f=1: kept the model"
    assert torch.equal(result.params, round.global_params)
