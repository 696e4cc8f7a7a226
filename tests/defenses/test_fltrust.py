import json
from dataclasses import replace

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import update_of

from datadefense import Examples, Server
from datadefense.core.local_training import Sgd
from datadefense.core.settings import SettingsError
from datadefense.defenses import FlTrust
from datadefense.testing import toy_round, toy_server


@pytest.mark.slow
@given(st.integers(0, 10_000), st.integers(1, 9), st.sampled_from([1e-3, 0.3, 1e3]))
def test_against_the_formula(seed, clients, scale):
    server, round = toy_server(seed), toy_round(clients, seed, scale)
    training = Sgd(1, 32, 0.01, 0.9)
    own = (
        training.train(
            server.predict, round.global_params, server.clean, server.generator("fltrust", 1)
        )
        - round.global_params
    )
    result = FlTrust().aggregate(None, round, server)
    assume(result.weights.sum() > 0)
    expected = oracles.fltrust(round.updates.tolist(), own.tolist())
    assert update_of(result, round).tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("size", [1e-44, 1e-39, 1e-35])
def test_an_update_too_short_to_have_a_direction_is_not_trusted(size):
    server, round = toy_server(), toy_round(6)
    updates = round.updates.clone()
    updates[0] = 0
    updates[0, -1] = size
    updates[1] = -updates[0]
    result = FlTrust().aggregate(None, replace(round, updates=updates), server)
    assert result.params.isfinite().all()
    assert result.weights[:2].tolist() == [0, 0]


def test_the_servers_step_is_plain_sgd():
    """One batch, no momentum: the trained vector is one gradient step from the start."""
    server, round = toy_server(), toy_round()
    start = round.global_params.clone().requires_grad_()
    loss = torch.nn.functional.cross_entropy(
        server.predict(start, server.clean.inputs), server.clean.labels
    )
    (gradient,) = torch.autograd.grad(loss, start)
    trained = Sgd(1, 64, 0.1, 0.0).train(
        server.predict, round.global_params, server.clean, torch.Generator()
    )
    assert torch.allclose(trained, round.global_params - 0.1 * gradient, atol=1e-6)


def test_nobody_trusted_keeps_the_model():
    server, round = toy_server(), toy_round(5)
    own = FlTrust().aggregate(None, round, server)
    step = (own.evidence["cosine"] > 0).nonzero().flatten()
    assert len(step)
    zeros = torch.zeros_like(round.updates)
    silent = toy_round(5).__class__(
        1, round.global_params, zeros, round.num_examples, round.client_ids
    )
    result = FlTrust().aggregate(None, silent, server)
    assert torch.equal(result.params, round.global_params)
    assert result.report["fallback"] == "fltrust trusts no client: kept the model"


def test_a_server_step_that_explodes_keeps_the_model():
    server, round = toy_server(), toy_round(5)
    result = FlTrust(learning_rate=1e38, epochs=20).aggregate(None, round, server)
    assert torch.equal(result.params, round.global_params)


def test_a_server_step_that_is_no_number_is_no_number_in_the_report():
    server, round = toy_server(), toy_round(5)
    broken = replace(server, predict=lambda params, x: server.predict(params, x) * torch.nan)
    result = FlTrust().aggregate(None, round, broken)
    assert torch.equal(result.params, round.global_params)
    assert result.report["server_norm"] is None
    json.dumps(dict(result.report), allow_nan=False)


@pytest.mark.parametrize(
    "server",
    [
        Server(),
        Server(predict=toy_server().predict),
        Server(toy_server().predict, Examples(torch.zeros(0, 200), torch.zeros(0).long())),
    ],
)
def test_it_says_what_it_needs(server):
    with pytest.raises(ValueError, match="fltrust needs a model and clean examples"):
        FlTrust().init(server, torch.zeros(27))


def test_bad_settings():
    with pytest.raises(SettingsError, match="learning_rate must be > 0, got -1"):
        FlTrust(learning_rate=-1.0)
