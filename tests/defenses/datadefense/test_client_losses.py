from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.defenses.datadefense import toys

from datadefense import Server
from datadefense.core.rng import generator
from datadefense.defenses.datadefense.client_losses import (
    AT_ONCE,
    WORST,
    client_losses,
    defense_set_of,
    mean_loss,
    split,
)
from datadefense.defenses.datadefense.losses import l_c
from datadefense.testing import toy_round, toy_server


@st.composite
def scored(draw):
    gamma = draw(st.lists(st.integers(0, 4), min_size=1, max_size=12))
    spared = draw(st.lists(st.booleans(), min_size=len(gamma), max_size=len(gamma)))
    beta = draw(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.2, 0.5, 1.0])))
    return [value / 4 for value in gamma], beta, spared


@given(scored())
def test_against_sorting(case):
    gamma, beta, spared = case
    marked = split(torch.tensor(gamma), beta, torch.tensor(spared))
    expected = oracles.most_suspicious(gamma, beta, spared)
    assert marked.nonzero().flatten().tolist() == expected
    marked = split(torch.tensor(gamma), beta)
    expected = oracles.most_suspicious(gamma, beta, [False] * len(gamma))
    assert marked.nonzero().flatten().tolist() == expected


@pytest.mark.parametrize(
    ("examples", "beta", "count"),
    [
        pytest.param(50, 0.2, 10, id="exact"),
        pytest.param(12, 0.2, 2, id="down"),
        pytest.param(13, 0.2, 3, id="up"),
        pytest.param(5, 1e-9, 1, id="at least one"),
        pytest.param(5, 1.0, 4, id="at most all but one"),
        pytest.param(2, 1.0, 1, id="two"),
        pytest.param(5, 0.0, 0, id="none"),
    ],
)
def test_how_many_are_marked(examples, beta, count):
    gamma = torch.rand(examples, generator=generator(0))
    assert int(split(gamma, beta).sum()) == count


def test_a_tie_goes_to_who_comes_first():
    gamma = torch.tensor([0.0, 1.0, 0.5, 0.5, 0.5, 0.5])
    assert split(gamma, 0.5).tolist() == [False, True, True, True, False, False]
    assert split(torch.full((40,), 0.5), 0.2).nonzero().flatten().tolist() == list(range(8))


@pytest.mark.parametrize("beta", [0.01, 0.5, 1.0])
def test_who_is_spared_is_never_marked(beta):
    gamma = torch.tensor([1.0, 0.9, 0.2, 0.1])
    spared = torch.tensor([True, True, False, False])
    marked = split(gamma, beta, spared)
    assert not (marked & spared).any()
    assert marked[2]
    assert not split(gamma, beta, torch.ones(4, dtype=torch.bool)).any()


def test_losses_of_clients_one_by_one():
    server, round = toy_server(), toy_round(4)
    owned = server.defense_set
    losses = client_losses(server, round, owned)
    for client, update in enumerate(round.updates):
        logits = server.predict(round.global_params + update, owned.examples.inputs)
        for row, label, loss in zip(
            logits.tolist(), owned.examples.labels.tolist(), losses[client].tolist(), strict=True
        ):
            assert loss == pytest.approx(oracles.log_odds_and_losses(row, label)[1], abs=1e-4)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e38])
def test_a_loss_that_is_not_finite_is_the_worst(value):
    server, round = toy_server(), toy_round(3)
    updates = round.updates.clone()
    updates[1] *= value
    losses = client_losses(server, replace(round, updates=updates), server.defense_set)
    assert losses.isfinite().all()
    assert losses.max() <= WORST
    assert losses.min() >= 0
    assert (losses[1] == WORST).any()
    assert (losses[[0, 2]] < 100).all()


def test_means_over_a_part():
    losses = torch.tensor([[1.0, 2.0, 6.0], [0.0, 5.0, 1.0]])
    means = mean_loss(losses, torch.tensor([True, False, True]))
    assert means.tolist() == [3.5, 0.5]
    assert means.dtype == torch.float64
    assert mean_loss(losses, torch.zeros(3, dtype=torch.bool)).tolist() == [0, 0]


@pytest.mark.parametrize(
    "server",
    [
        Server(),
        Server(predict=toy_server().predict),
        Server(defense_set=toy_server().defense_set),
        replace(toy_server(), defense_set=toy_server().defense_set.take(torch.arange(0))),
    ],
)
def test_it_says_what_it_needs(server):
    with pytest.raises(ValueError, match="some-rule needs a model and a defense set"):
        defense_set_of(server, "some-rule")


def test_many_examples_go_through_in_parts_to_the_same_bits():
    owned = toys.defense_set(800, 150, 100)
    server, round = toys.server(owned), toys.attacked_round()
    assert len(owned) > 5 * AT_ONCE
    z = server.logits(round.global_params + round.updates[0], owned.examples.inputs)
    found = client_losses(server, round, owned)[0]
    assert torch.equal(found, l_c(z, owned.examples.labels).clamp(max=WORST))
