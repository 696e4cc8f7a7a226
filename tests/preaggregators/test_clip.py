import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round, rounds

from datadefense import Server, create
from datadefense.core.settings import SettingsError
from datadefense.preaggregators import Clip


def prepared(part, round):
    return part.prepare(part.init(Server(), round.global_params), round, Server())


@given(rounds(), st.sampled_from([None, 0.5, 3.0]))
def test_it_is_the_slow_one(round, bound):
    made = prepared(Clip(norm_bound=bound), round)
    wanted = torch.tensor(oracles.clip_rows(round.updates.tolist(), bound))
    assert torch.allclose(made.round.updates, wanted, atol=1e-5)
    assert torch.equal(made.round.num_examples, round.num_examples)
    assert made.round.client_ids == round.client_ids


def test_less_than_half_of_the_clients_cannot_raise_the_bound():
    updates = torch.tensor([[1.0], [2.0], [1e30], [-1e30]])
    made = prepared(Clip(), as_round(updates))
    assert made.report["norm_bound"] == 2.0
    assert made.round.updates.flatten().tolist() == pytest.approx([1, 2, 2, -2])


@given(rounds())
def test_with_fedavg_behind_it_is_ndc(round):
    ours = create("clip+fedavg", {"norm_bound": 1.5})
    ndc = create("ndc", {"norm_bound": 1.5})
    state = ours.init(Server(), round.global_params)
    result, wanted = ours.aggregate(state, round, Server()), ndc.aggregate(None, round, Server())
    assert torch.allclose(result.params, wanted.params, atol=1e-5)
    assert torch.allclose(result.weights, wanted.weights, atol=1e-6)
    assert torch.equal(result.evidence["clip.scale"], wanted.evidence["scale"])


def test_one_client_is_enough_and_a_bound_is_above_0():
    assert Clip().shortage(1) is None
    made = prepared(Clip(), as_round([[3.0, 4.0]]))
    assert made.round.updates.tolist() == [[3.0, 4.0]]
    with pytest.raises(SettingsError, match="norm_bound must be > 0, got 0"):
        Clip(norm_bound=0.0)
