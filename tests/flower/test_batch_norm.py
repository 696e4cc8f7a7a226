"""A ResNet with BatchNorm on a grid without a network, trained from scratch by the nodes."""

import logging

import numpy as np
import pytest
import torch
from tests.flower.fake_grid import FakeGrid, model_in, record, reply
from tests.small_resnet import resnet_federation, resnet_server, small_resnet, stripes

from datadefense import Layout
from datadefense.core.buffers import FreshStatisticsWarning, UnhandledBuffersError
from datadefense.core.local_training import Sgd, Trainer
from datadefense.defenses import FlTrust
from datadefense.flower import DefendedStrategy
from datadefense.flower.session import open_session

START = {name: value.numpy() for name, value in small_resnet().state_dict().items()}


def trains(node, poison=None):
    """Return a node that trains the whole model it is sent and replies with all its arrays."""

    def answer(message):
        module = small_resnet()
        module.load_state_dict(
            {name: torch.tensor(array) for name, array in model_in(message).items()}
        )
        layout = Layout.of_module(module)
        trainer = Trainer(module, layout)
        draw = torch.Generator().manual_seed(node)
        trainer.train(Sgd(2, 16, 0.05), stripes(60, 10 + node), draw)
        arrays = {name: value.numpy() for name, value in module.state_dict().items()}
        assert arrays["bn1.num_batches_tracked"] > 0
        return reply(message, poison(arrays) if poison else arrays, count=60)

    return answer


NODES = {node: trains(node) for node in range(1, 8)}


def negative_variances(arrays):
    """Return a model whose variances pull those of the average far below 0."""
    return {
        name: np.full_like(array, -1e4) if name.endswith("running_var") else array
        for name, array in arrays.items()
    }


def run(defense, nodes=NODES, rounds=3, **choices):
    owned = resnet_server(resnet_federation()).defense_set
    strategy = DefendedStrategy(
        defense, model=small_resnet(), defense_set=owned, seed=0, wait_seconds=0, **choices
    )
    result = strategy.start(FakeGrid(nodes), record(START), rounds, timeout=0)
    return {name: torch.tensor(array.numpy()) for name, array in result.arrays.items()}


def accuracy(state):
    module, tests = small_resnet(), stripes(200, 2)
    module.load_state_dict(state)
    with torch.no_grad():
        logits = module.eval()(tests.inputs)
    assert logits.isfinite().all()
    return float((logits.argmax(1) == tests.labels).double().mean())


@pytest.mark.parametrize(
    ("defense", "rounds"),
    [("fedavg", 3), ("multi-krum", 3), ("median", 3), (FlTrust(2, 8, 0.05), 6), ("datadefense", 3)],
)
def test_it_learns_from_scratch_without_a_choice(defense, rounds, caplog):
    with caplog.at_level(logging.INFO, logger="flwr"):
        state = run(defense, rounds=rounds)
    assert accuracy(state) > 0.95
    assert state["bn1.num_batches_tracked"] == 0
    assert state["bn1.num_batches_tracked"].dtype == torch.int64
    assert any("10 are aggregated with the parameters" in line for line in caplog.messages)
    assert any("5 stay as the server has them" in line for line in caplog.messages)


@pytest.mark.parametrize("defense", ["fedavg", "median", "ndc", "fltrust", "datadefense"])
def test_no_node_makes_a_variance_negative(defense):
    hostile = {**NODES, 7: trains(7, negative_variances)}
    state = run(defense, hostile, rounds=1)
    assert all((state[name] >= 0).all() for name in state if name.endswith("running_var"))
    accuracy(state)


def test_kept_fresh_statistics_warn_and_stay():
    with pytest.warns(FreshStatisticsWarning, match="5 layers are freshly initialised"):
        state = run("multi-krum", rounds=1, buffers="keep")
    assert (state["bn1.running_var"] == 1).all()


def test_kept_statistics_are_those_that_nodes_are_sent():
    """The model that the strategy is given is an architecture: its own buffers are fresh."""
    strategy = DefendedStrategy(
        "fltrust", model=small_resnet(), clean=stripes(8, 1), buffers="keep"
    )
    moved = {**START, "bn1.running_mean": START["bn1.running_mean"] + 3}
    session = open_session(strategy.settings, record(moved), "")
    module = small_resnet()
    module.load_state_dict({name: torch.tensor(array) for name, array in moved.items()})
    images = stripes(8, 2).inputs
    expected = module.eval()(images)
    torch.testing.assert_close(session.server.predict(session.state.params, images), expected)


def test_refused_before_the_first_round():
    with pytest.raises(UnhandledBuffersError, match="15 buffers"):
        run("fedavg", buffers="refuse")
