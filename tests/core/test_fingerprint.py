"""A state of another run is refused, and the sentence says in what it differs."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from datadefense import Combined, Layout, Rule, StateError, create, load_state, save_state
from datadefense.core.fingerprint import Fingerprint


def layout(width=3, **options):
    return Layout.of_module(nn.Linear(width, 2, **options))


def mine(defense="krum", settings=None, run="", **options):
    return Fingerprint.of(create(defense, settings), layout(**options), run)


def test_the_same_run_is_the_same_whatever_the_parameters(tmp_path):
    save_state(tmp_path / "s", torch.arange(3.0), mine(run="a"))
    back = load_state(tmp_path / "s", torch.zeros(3), mine(run="a"))
    assert back.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        ({"defense": "median"}, "its defense is 'krum', this one's 'median'"),
        ({"settings": {"num_malicious": 2}}, "setting 'num_malicious' is 1 there, 2 here"),
        ({"width": 4}, "tensor 'weight' is float32 [2, 3] there, float32 [2, 4] here"),
        ({"bias": False}, "tensor 'bias' is only there"),
        ({"dtype": torch.float64}, "tensor 'weight' is float32 [2, 3] there, float64 [2, 3] here"),
        ({"run": "b"}, "its run is '', this one's 'b'"),
    ],
)
def test_what_differs_is_named(tmp_path, other, difference):
    save_state(tmp_path / "s", None, mine())
    with pytest.raises(StateError) as refused:
        load_state(tmp_path / "s", None, mine(**other))
    said = str(refused.value)
    assert difference in said
    assert said.startswith(f"{tmp_path / 's'} is no state of this run: ")
    assert "choose another place for the state, or move this file away" in said


def test_a_file_that_does_not_say_whose_it_is(tmp_path):
    save_state(tmp_path / "s", None)
    with pytest.raises(StateError, match="does not say which run it is of"):
        load_state(tmp_path / "s", None, mine())
    save_state(tmp_path / "s", None, mine())
    assert load_state(tmp_path / "s", None) is None  # who does not ask is not told


@pytest.mark.parametrize("text", ["[]", "7", "{}", '{"defense": ["krum"]}', "{", "null"])
def test_a_fingerprint_that_is_none(tmp_path, text):
    save_state(tmp_path / "s", None, SimpleNamespace(to_text=lambda: text))
    with pytest.raises(StateError):
        load_state(tmp_path / "s", None, mine())


def test_a_damaged_file_is_damaged_and_not_another_runs(tmp_path):
    save_state(tmp_path / "s", torch.zeros(3), mine())
    content = bytearray((tmp_path / "s").read_bytes())
    content[-1] ^= 1
    (tmp_path / "s").write_bytes(content)
    with pytest.raises(StateError, match="is a broken state file"):
        load_state(tmp_path / "s", torch.zeros(3), mine(defense="median"))


class Plain(Rule):
    """No dataclass, no name."""

    def combine(self, round):
        return Combined(round.updates.mean(0))


@dataclass(frozen=True)
class Odd(Rule):
    """A setting that JSON has no word for."""

    name = "odd"
    limits: tuple = (1, float("inf"))

    def combine(self, round):
        return Combined(round.updates.mean(0))


@pytest.mark.parametrize("defense", [Plain(), Odd()])
def test_any_defense_has_a_fingerprint(tmp_path, defense):
    print_of = Fingerprint.of(defense, layout())
    save_state(tmp_path / "s", None, print_of)
    assert load_state(tmp_path / "s", None, print_of) is None


def test_every_tensor_that_is_aggregated_counts():
    norm = Layout.of_module(nn.BatchNorm1d(2))
    assert list(Fingerprint.of(create("krum"), norm).tensors) == [
        "weight",
        "bias",
        "running_mean",
        "running_var",
    ]
