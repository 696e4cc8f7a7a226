import math
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from datadefense import load_state, save_state
from datadefense.storage import StateError, write_atomically, write_text


class Pair(NamedTuple):
    left: Tensor
    right: Tensor


@dataclass(frozen=True)
class Inner:
    weights: Tensor
    name: str


@dataclass(frozen=True)
class State:
    inner: Inner
    pair: Pair
    steps: int
    rate: float
    marks: tuple
    lookup: dict
    nothing: None


def state(seed=0):
    draw = torch.Generator().manual_seed(seed)
    odd = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, 3.4e38])
    return State(
        Inner(odd, "seven"),
        Pair(torch.randn(3, 2, generator=draw).double(), torch.randint(9, (2,), generator=draw)),
        12,
        0.1 + 0.2,
        (1, "two", 3.5, True, None),
        {"a": torch.tensor(True), "b": 2},
        None,
    )


def bits(tensor):
    return tensor.contiguous().view(torch.uint8).tolist() if tensor.ndim else tensor.item()


def test_every_bit_comes_back(tmp_path):
    save_state(tmp_path / "s", state())
    back = load_state(tmp_path / "s", like=state(1))
    assert type(back) is State
    assert type(back.pair) is Pair
    assert bits(back.inner.weights) == bits(state().inner.weights)
    assert bits(back.pair.left) == bits(state().pair.left)
    assert torch.equal(back.pair.right, state().pair.right)
    assert (back.steps, back.rate, back.marks) == (12, 0.1 + 0.2, state().marks)
    assert back.lookup["a"].item() is True
    assert back.lookup["b"] == 2
    assert back.nothing is None


def test_keys_keep_their_kind(tmp_path):
    one, two = torch.ones(1), torch.zeros(1)
    for value in ({1: one, "1": two}, {"a.b": one, "a": {"b": two}}, {"0": (one,), 0: (two,)}):
        save_state(tmp_path / "s", value)
        back = load_state(str(tmp_path / "s"), like={})
        assert list(back) == list(value)
        assert str(back) == str(value)
    with pytest.raises(StateError, match="keys must be integers or texts"):
        save_state(tmp_path / "s", {(1, 2): one})


def test_what_was_none_cannot_become_a_class(tmp_path):
    save_state(tmp_path / "s", (Pair(torch.ones(1), torch.ones(1)),))
    with pytest.raises(StateError, match="does not hold a NoneType"):
        load_state(tmp_path / "s", like=(None,))


def test_shapes_must_agree(tmp_path):
    save_state(tmp_path / "s", torch.ones(3))
    with pytest.raises(StateError, match=r"is torch.float32 \(3,\), expected torch.float32 \(1,\)"):
        load_state(tmp_path / "s", like=torch.ones(1))


@pytest.mark.parametrize("value", [None, torch.arange(3.0)])
def test_bare_states(tmp_path, value):
    save_state(tmp_path / "s", value)
    back = load_state(tmp_path / "s", like=value)
    assert back is None if value is None else torch.equal(back, value)


@dataclass(frozen=True)
class Older:
    weights: torch.Tensor


@dataclass(frozen=True)
class Newer:
    weights: torch.Tensor
    kept: dict = field(default_factory=dict)
    count: int = 3


def test_a_file_of_a_version_that_did_not_know_a_field(tmp_path):
    save_state(tmp_path / "s", Older(torch.ones(2)))
    back = load_state(tmp_path / "s", like=Newer(torch.zeros(2), {"a": 1}, 5))
    assert torch.equal(back.weights, torch.ones(2))
    assert (back.kept, back.count) == ({}, 3)
    save_state(tmp_path / "s", Newer(torch.ones(2)))
    with pytest.raises(StateError, match="does not hold a Older"):
        load_state(tmp_path / "s", like=Older(torch.zeros(2)))


def test_the_wrong_kind_of_state(tmp_path):
    save_state(tmp_path / "s", Inner(torch.zeros(2), "x"))
    with pytest.raises(StateError, match="does not hold a State"):
        load_state(tmp_path / "s", like=state())
    with pytest.raises(StateError, match="expected torch.float64"):
        load_state(tmp_path / "s", like=Inner(torch.zeros(2).double(), "x"))
    with pytest.raises(StateError, match="does not hold a NoneType"):
        load_state(tmp_path / "s", like=None)


def test_files_that_are_no_states(tmp_path):
    (tmp_path / "text").write_text("hello")
    save_file({"a": torch.zeros(1)}, tmp_path / "tensors")
    save_file(
        {"a": torch.zeros(1)},
        tmp_path / "broken",
        {"format": "datadefense-state-2", "tree": '{"fields": {"weights": {"tensor": "b"}}}'},
    )
    save_state(tmp_path / "cut", state())
    content = (tmp_path / "cut").read_bytes()
    (tmp_path / "cut").write_bytes(content[: len(content) // 2])
    for name in ("text", "tensors", "broken", "cut", "missing"):
        with pytest.raises(StateError, match=name):
            load_state(tmp_path / name, like=state())


def test_what_a_state_cannot_hold(tmp_path):
    with pytest.raises(StateError, match="state is a object"):
        save_state(tmp_path / "s", object())
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file(tmp_path):
    target = tmp_path / "file"
    write_text(target, "old")

    def fail(part):
        part.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match=f"disk full: '{target}'"):
        write_atomically(target, fail)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
