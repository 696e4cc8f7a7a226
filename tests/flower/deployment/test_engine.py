"""An experiment on a deployment: SuperNodes train its clients, to the very bits of our engine."""

import pytest
import torch
from safetensors.torch import load_file
from tests.runs.quick import quick

pytest.importorskip("flwr")
from tests.flower.deployment.loopback import Loopback

from datadefense.flower.engine.launch import Deployment, run_app
from datadefense.runs.files import CHECKPOINT
from datadefense.runs.run import start
from datadefense.simulation.pool import Pool


def test_supernodes_give_the_very_bits_of_our_engine(tmp_path, monkeypatch):
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path / "cache"))
    chosen = quick(defense="median", rounds=2)
    run = start(chosen, tmp_path / "builtin")
    with Pool(run.federation) as pool:
        list(run.rounds(pool))
        run.finish(pool)
    with Loopback(tmp_path / "deployment") as loopback:
        loopback.nodes_there(0, 1, of=2)
        there = Deployment(f"127.0.0.1:{loopback.port}")
        lines = list(run_app(chosen, tmp_path / "flower", None, workers=1, deployment=there))
    assert any("round 2/2" in line for line in lines)
    ours, theirs = (load_file(tmp_path / one / CHECKPOINT) for one in ("builtin", "flower"))
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(theirs[name], tensor), name
