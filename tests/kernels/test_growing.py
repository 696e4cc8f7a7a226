"""A matrix that grows with what is admitted: same content, no copy, no memory for announcements."""

import errno
import shutil
from collections import namedtuple

import pytest
import torch

from datadefense import Gate, Layout, Spill, Submission
from datadefense.kernels import growing
from datadefense.kernels.growing import Rows
from datadefense.kernels.memory import GrowingMemory
from datadefense.kernels.spill import GrowingFile, is_spilled

DIM = 1000


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """The first part of a large matrix has four rows of DIM."""
    monkeypatch.setattr(growing, "AT_ONCE", 4 * DIM * 4)


@pytest.fixture(params=["memory", "file"])
def spill(request, tmp_path):
    return Spill(tmp_path, 0) if request.param == "file" else None


def test_rows_keep_their_content_while_the_matrix_grows(spill):
    rows = Rows(50, DIM, torch.float32, spill)
    for place in range(41):
        rows.row(place).fill_(float(place))
        assert len(rows.first(50)) <= max(4, 2 * (place + 1))
    matrix = rows.first(41)
    del rows
    assert is_spilled(matrix) == (spill is not None)
    assert torch.equal(matrix, torch.arange(41.0)[:, None].expand(41, DIM))


def test_a_row_that_somebody_keeps_costs_a_copy_and_no_content(spill):
    rows = Rows(50, DIM, torch.float32, spill)
    kept = []
    for place in range(20):
        kept.append(rows.row(place).fill_(float(place)))
    assert torch.equal(rows.first(20), torch.stack(kept))


def test_no_row_is_copied_in_memory_that_grows():
    """Two gigabytes announced, and more than memory has: what is touched is what is there."""
    store = GrowingMemory(1 << 20, torch.float32)
    matrix = store.grow(4)
    matrix.fill_(3.0)
    whole = store._map
    del matrix
    assert store.grow(1 << 9)[3, -1] == 3
    assert store._map is whole


@pytest.mark.parametrize("expected", [10**6, 10**9])
def test_announced_submissions_cost_nothing(spill, expected):
    """4 PB at the most: an allocation of all of it fails on any machine."""
    wide = 10**6
    layout = Layout.of_state_dict({"w": torch.zeros(wide)})
    bad = Submission("bad", torch.full((wide,), torch.nan), 1)
    good = [Submission(f"c{j}", torch.full((wide,), float(j)), 1) for j in range(6)]
    gate = Gate(layout, spill=spill)
    admission = gate.admit(1, torch.zeros(wide), iter([bad, *good, bad]), expected=expected)
    assert admission.round.updates[:, 7].tolist() == [0, 1, 2, 3, 4, 5]
    assert [one.client_id for one in admission.rejected] == ["bad", "bad"]


def test_the_spare_row_comes_when_the_matrix_is_full(spill):
    rows = Rows(5, DIM, torch.float32, spill)
    for place in range(5):
        rows.row(place).fill_(1.0)
    with pytest.raises(IndexError):
        rows.row(5)


def test_no_memory_is_an_error_with_numbers():
    store = GrowingMemory(10**6, torch.float32)
    with pytest.raises(OSError, match="need 4000000000000000 bytes of memory") as raised:
        store.grow(10**9)
    assert raised.value.errno == errno.ENOMEM


def test_a_disk_that_fills_up_while_the_matrix_grows(tmp_path, monkeypatch):
    store = GrowingFile(Spill(tmp_path, 0), DIM, torch.float32)
    store.grow(4)
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10_000))
    with pytest.raises(OSError, match="need 16000 bytes, 10000 are free"):
        store.grow(8)
    assert list(tmp_path.iterdir()) == []
