"""The example app without Flower's runtime: what its nodes send, honest and malicious."""

import copy
import importlib
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("flwr")
pytest.importorskip("mlxtend")
EXAMPLE = Path(__file__).parents[2] / "examples" / "flower-app"


@pytest.fixture(scope="module")
def app():
    """The modules of the app by name, forgotten again afterwards."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        names = ("task", "hostile", "client_app", "server_app")
        yield {name: importlib.import_module(f"defended_digits.{name}") for name in names}
    finally:
        sys.path.remove(str(EXAMPLE))
        for name in [name for name in sys.modules if name.startswith("defended_digits")]:
            del sys.modules[name]


def vector(state):
    return torch.cat([tensor.flatten() for tensor in state.values()])


def test_a_malicious_node_replaces_an_average_by_a_model_with_the_backdoor(app):
    """Three nodes of equal size, of which two send the model that they got."""
    task = app["task"]
    start = task.warm_model(0)
    nodes, own = 3, len(task.shard(0, 0, 3))
    before = vector(start.state_dict())
    state, count = app["hostile"].attack(copy.deepcopy(start), own * nodes, nodes, 1, 0)
    share = count / (own * nodes)
    replaced = copy.deepcopy(start)
    replaced.load_state_dict(
        {name: value + share * (state[name] - value) for name, value in start.state_dict().items()}
    )
    assert float((vector(replaced.state_dict()) - before).norm()) <= 1 + 1e-4
    clean, poisoned = task.judge(start, 0), task.judge(replaced, 0)
    assert poisoned["asr_percent"] > clean["asr_percent"] + 50
    assert poisoned["ma_percent"] > clean["ma_percent"] - 20


def test_the_server_has_a_defense_set_of_which_some_is_known(app):
    task = app["task"]
    owned = task.server_set(task.warm_model(0), 0)
    assert int(owned.known_clean.sum()) == task.KNOWN_CLEAN
    assert len(owned.examples) == 456
