"""A warm start that is trained now and one from the cache are the same, to what comes after."""

import pytest
import torch
from tests.experiments.quick import quick

from datadefense.experiments.assembly import assemble

pytest.importorskip("mlxtend")
pytest.importorskip("sklearn")


def test_who_trains_it_has_the_same_bits_as_who_finds_it(tmp_path, monkeypatch):
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path / "cache"))
    (trained, first), (found, second) = (assemble(quick(warm_learning_rate=0.02)) for _ in range(2))
    assert torch.equal(trained.start, found.start)
    assert torch.equal(first.defense_set.features, second.defense_set.features)
    strides = [
        [one.stride() for one in federation.module.parameters()] for federation in (trained, found)
    ]
    assert strides[0] == strides[1]
