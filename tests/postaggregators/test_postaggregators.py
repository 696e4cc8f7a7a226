"""Steps of the server: against slow ones, over rounds, and with statistics in the vector."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round
from torch import nn

from datadefense import Layout, Round, Server, create
from datadefense.core.settings import SettingsError
from datadefense.postaggregators import FedAdam, ServerMomentum, ServerStep

SERIES = st.lists(st.integers(-40, 40).map(lambda x: x / 8), min_size=1, max_size=6)


def steps(part, updates):
    """Return the steps that one coordinate takes, round by round."""
    params = torch.zeros(1, dtype=torch.float64)
    state, taken = part.init(Server(), params), []
    for index, update in enumerate(updates):
        vector = torch.tensor([update], dtype=torch.float64)
        step = part.step(state, vector, as_round(vector[None], index=index + 1), Server())
        state = step.state
        taken.append(float(step.update))
    return taken


@given(SERIES)
def test_fedadam_is_the_slow_one(updates):
    wanted = oracles.adam_steps(updates, 0.01, 0.9, 0.99, 1e-3)
    assert steps(FedAdam(), updates) == pytest.approx(wanted, rel=1e-9, abs=1e-12)


@given(SERIES, st.sampled_from([0.0, 0.5, 0.9]))
def test_momentum_is_the_slow_one(updates, beta):
    wanted, m = [], 0.0
    for update in updates:
        m = beta * m + update
        wanted.append(0.5 * m)
    assert steps(ServerMomentum(momentum=beta, step_size=0.5), updates) == pytest.approx(wanted)


def test_a_step_size_scales_model_and_weights():
    round = as_round(torch.randn(5, 4))
    plain = create("fedavg").aggregate(None, round, Server())
    defense = create("fedavg+server-step", {"step_size": 0.25})
    result = defense.aggregate(defense.init(Server(), round.global_params), round, Server())
    update = plain.params - round.global_params
    assert torch.allclose(result.params, round.global_params + 0.25 * update, atol=1e-6)
    assert torch.allclose(result.weights, 0.25 * plain.weights)


def test_no_update_makes_fedadams_state_infinite():
    """A second moment of infinity would freeze a coordinate for good."""
    part, params = FedAdam(), torch.zeros(2)
    huge = torch.tensor([3e38, -3e38])
    step = part.step(part.init(Server(), params), huge, as_round(huge[None]), Server())
    assert bool(step.state.second_root.isfinite().all())
    assert step.update.abs().max() < 0.02


def test_where_the_rule_kept_the_model_no_momentum_moves_it():
    defense = create("krum+server-momentum")
    round = as_round(torch.randn(5, 4))
    state = defense.aggregate(defense.init(Server(), round.global_params), round, Server()).state
    few = as_round(torch.randn(2, 4), index=2)
    result = defense.aggregate(state, few, Server())
    assert result.report["fallback"].endswith("kept the model")
    assert torch.equal(result.params, few.global_params)
    assert torch.equal(result.state.after[0].momentum, state.after[0].momentum)


@pytest.mark.parametrize("name", ["server-momentum", "fedadam"])
def test_statistics_take_the_update_as_it_is(name):
    layout = Layout.of_module(nn.BatchNorm1d(3))
    sizes = torch.tensor([slot.stop - slot.start for slot in layout.slots])
    carried = torch.tensor([slot.carried for slot in layout.slots]).repeat_interleave(sizes)
    updates = torch.randn(4, layout.dim)
    counts, ids = torch.ones(4).long(), tuple(range(4))
    defense = create(f"fedavg+{name}")
    params = torch.zeros(layout.dim)
    state = defense.init(Server(), params)
    for index in (1, 2):
        round = Round(index, params, updates, counts, ids, layout)
        result = defense.aggregate(state, round, Server())
        state = result.state
    moved, mean = result.params, updates.mean(0)
    assert torch.allclose(moved[carried], mean[carried], atol=1e-6)
    assert not torch.allclose(moved[~carried], mean[~carried], atol=1e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ServerStep(step_size=0.0), "step_size must be > 0"),
        (lambda: ServerMomentum(momentum=1.0), "momentum must be < 1"),
        (lambda: FedAdam(tau=0.0), "tau must be > 0"),
        (lambda: FedAdam(beta_2=1.0), "beta_2 must be < 1"),
    ],
)
def test_bad_settings(make, message):
    with pytest.raises(SettingsError, match=message):
        make()
