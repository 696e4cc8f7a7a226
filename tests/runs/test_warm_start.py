"""Warm starts: trained once, and the same to what comes after whoever trained them."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from tests.runs.quick import quick

from datadefense.core.storage import exclusive_lock
from datadefense.runs import warm_start
from datadefense.runs.build import assemble

pytest.importorskip("mlxtend")


def test_who_trains_it_has_the_same_bits_as_who_finds_it(tmp_path, monkeypatch):
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path / "cache"))
    (trained, first), (found, second) = (
        assemble(quick(**{"warm.learning_rate": 0.02})) for _ in range(2)
    )
    assert torch.equal(trained.start, found.start)
    assert torch.equal(first.defense_set.features, second.defense_set.features)
    strides = [
        [one.stride() for one in federation.module.parameters()] for federation in (trained, found)
    ]
    assert strides[0] == strides[1]


@pytest.mark.parametrize("damage", [b"", b"no safetensors"])
def test_a_broken_file_is_trained_again(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path))
    first, _ = assemble(quick())
    (kept,) = (tmp_path / "warm").glob("*.safetensors")
    whole = kept.read_bytes()
    kept.write_bytes(damage)
    again, _ = assemble(quick())
    assert torch.equal(first.start, again.start)
    assert kept.read_bytes() == whole


def test_who_comes_second_waits_for_the_one_that_is_being_trained(tmp_path, monkeypatch):
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path))
    first, _ = assemble(quick())
    (kept,) = (tmp_path / "warm").glob("*.safetensors")
    whole = kept.read_bytes()
    kept.unlink()
    monkeypatch.setattr(warm_start, "_train", None)
    with ThreadPoolExecutor(1) as threads:
        with exclusive_lock(kept.with_suffix(".lock")):
            second = threads.submit(assemble, quick())
            with pytest.raises(TimeoutError):
                second.result(timeout=1)
            kept.write_bytes(whole)
        found, _ = second.result(timeout=60)
    assert torch.equal(first.start, found.start)
