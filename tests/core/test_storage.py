import json
import math
import os
import stat
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from datadefense import load_state, save_state
from datadefense.core import tensor_file
from datadefense.core.state_tree import encode
from datadefense.core.storage import (
    FORMAT,
    UNSEALED_FORMAT,
    StateError,
    write_atomically,
    write_text,
)


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


def forged(path, state, change):
    """Write a state with another tree and a checksum that is right."""
    tensors = {}
    tree = change(json.dumps(encode(state, "state", tensors)))
    tensor_file.write_sealed(path, tensors, {"format": FORMAT, "tree": tree})


@dataclass(frozen=True)
class Plain:
    steps: int = 3
    rate: float = 0
    name: str = "a"
    on: bool = True
    best: float | None = None
    open: object = None
    past: tuple[float, ...] = ()
    names: dict[str, int] = field(default_factory=dict)


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": 2.5},
        {"steps": True},
        {"steps": "3"},
        {"steps": None},
        {"steps": (3,)},
        {"steps": {"a": 3}},
        {"steps": torch.ones(1)},
        {"rate": "0.5"},
        {"rate": None},
        {"name": 7},
        {"on": 1},
        {"best": "high"},
        {"best": torch.ones(1)},
        {"best": (1.0,)},
        {"past": ("a",)},
        {"past": 3.0},
        {"past": {0: 1.0}},
        {"names": {"a": "b"}},
        {"names": {1: 1}},
        {"names": ()},
    ],
    ids=str,
)
def test_values_of_another_kind_are_refused(tmp_path, wrong):
    save_state(tmp_path / "s", replace(Plain(), **wrong))
    with pytest.raises(StateError, match=f"state.{next(iter(wrong))}"):
        load_state(tmp_path / "s", like=Plain())


@pytest.mark.parametrize(
    "fine",
    [
        {"steps": 4},
        {"rate": 0.5},
        {"rate": 1},
        {"rate": math.inf},
        {"rate": -math.inf},
        {"best": 2.5},
        {"best": 2},
        {"open": "anything"},
        {"open": (1, {"a": torch.ones(1)})},
        {"past": (1.0, 2.0)},
        {"names": {"a": 1}},
    ],
    ids=str,
)
def test_values_of_a_declared_kind_come_back(tmp_path, fine):
    save_state(tmp_path / "s", replace(Plain(), **fine))
    assert load_state(tmp_path / "s", like=Plain()) == replace(Plain(), **fine)
    save_state(tmp_path / "s", Plain())
    assert load_state(tmp_path / "s", like=replace(Plain(), **{"best": 3.0})) == Plain()


def test_what_is_not_finite_comes_back_from_strict_json(tmp_path):
    save_state(tmp_path / "s", Plain(rate=math.nan))
    assert math.isnan(load_state(tmp_path / "s", like=Plain()).rate)
    assert b"NaN" not in (tmp_path / "s").read_bytes()


def test_every_byte_of_the_file_is_under_its_checksum(tmp_path):
    save_state(tmp_path / "s", state())
    content = (tmp_path / "s").read_bytes()
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        (tmp_path / "s").write_bytes(changed)
        if content[place : place + 1] == b"3" and b"state-3" in content[place - 6 : place + 1]:
            continue  # the number of the format: one bit makes it the one without a checksum
        with pytest.raises(StateError):
            load_state(tmp_path / "s", like=state())


def test_a_file_without_a_checksum_is_of_the_format_before(tmp_path):
    tensors = {}
    tree = json.dumps(encode(Plain(5), "state", tensors))
    for form in (FORMAT, UNSEALED_FORMAT):
        tensor_file.write(tmp_path / form, tensors, {"format": form, "tree": tree})
    with pytest.raises(StateError, match="its bytes have the SHA-256 .*, it says ''"):
        load_state(tmp_path / FORMAT, like=Plain())
    assert load_state(tmp_path / UNSEALED_FORMAT, like=Plain()) == Plain(5)


TREES = {
    "nested": lambda tree: '{"items": [' * 100_000,
    "closed": lambda tree: '{"items": [' * 50_000 + "]}" * 50_000,
    "digits": lambda tree: tree.replace("3", "3" * 5000, 1),
    "no json": lambda tree: "{",
    "list": lambda tree: "[]",
    "null": lambda tree: "null",
    "empty": lambda tree: "{}",
    "two kinds": lambda tree: '{"value": 1, "items": []}',
    "unknown kind": lambda tree: '{"class": "os.system"}',
    "no such tensor": lambda tree: '{"tensor": "x"}',
    "odd float": lambda tree: '{"float": "high"}',
    "value that is a list": lambda tree: '{"value": [1]}',
    "fields that are a list": lambda tree: '{"fields": ["steps"]}',
    "pairs of one": lambda tree: '{"pairs": [[1]]}',
    "keys that cannot be": lambda tree: '{"pairs": [[[1], {"value": 1}]]}',
    "keys twice": lambda tree: '{"pairs": [["a", {"value": 1}], ["a", {"value": 2}]]}',
}


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("like", [Plain(), {}, (), None], ids=["record", "dict", "tuple", "none"])
def test_a_broken_tree_is_a_state_error(tmp_path, tree, like):
    forged(tmp_path / "s", Plain(), TREES[tree])
    with pytest.raises(StateError):
        load_state(tmp_path / "s", like=like)


def test_a_state_is_its_owners_before_anything_is_in_it(tmp_path, monkeypatch):
    modes = []
    original = tensor_file.write_sealed

    def watched(path, tensors, metadata):
        modes.append((stat.S_IMODE(path.stat().st_mode), path.stat().st_size))
        original(path, tensors, metadata)

    monkeypatch.setattr(tensor_file, "write_sealed", watched)
    before = os.umask(0)
    try:
        save_state(tmp_path / "s", state())
        write_text(tmp_path / "open", "text")
    finally:
        os.umask(before)
    assert modes == [(0o600, 0)]
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o666


def test_what_a_dead_process_left_is_in_nobodys_way(tmp_path):
    left = tmp_path / f".s.{os.getpid()}.part"
    left.write_text("a part")
    left.chmod(0o666)
    save_state(tmp_path / "s", state())
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [tmp_path / "s"]


def test_equal_states_have_equal_bytes(tmp_path):
    written = set()
    for _ in range(5):
        save_state(tmp_path / "s", state())
        written.add((tmp_path / "s").read_bytes())
    assert len(written) == 1


def test_what_a_state_cannot_hold(tmp_path):
    with pytest.raises(StateError, match="state is a object"):
        save_state(tmp_path / "s", object())
    with pytest.raises(StateError, match="4300"):
        save_state(tmp_path / "s", 10**5000)
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
