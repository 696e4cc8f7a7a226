"""Thousands of replies of hostile nodes: no run ends, and the honest are heard in every round."""

import json
import math

import numpy as np
import pytest
from flwr.serverapp.strategy import FedAvg
from tests.flower.fake_grid import FakeGrid, record
from tests.flower.hostile import Hostile
from tests.flower.test_strategy import HONEST, START

from datadefense.flower import DefendedStrategy

HOSTILE_NODES = 20


def hostile_run(seed, defense, folder, rounds=3):
    """Run some rounds of honest and hostile nodes and hold the run to what is promised."""
    hostile = Hostile(seed)
    nodes = {**HONEST, **dict.fromkeys(range(6, 6 + HOSTILE_NODES), hostile.reply)}
    inner = FedAvg(fraction_evaluate=1.0)
    strategy = DefendedStrategy(defense, inner=inner, folder=folder, wait_seconds=0)
    result = strategy.start(FakeGrid(nodes), record(START), rounds, timeout=0)
    for array in result.arrays.values():
        assert np.isfinite(array.numpy()).all()
    lines = (folder / "audit.jsonl").read_text(encoding="ascii").splitlines()
    assert len(lines) == rounds
    for index, line in enumerate(map(strict, lines), start=1):
        assert line["round"] == index
        verdicts = {node["client"]: node["verdict"] for node in line["clients"]}
        assert sorted(verdicts) == sorted(nodes)
        assert len(line["clients"]) == len(nodes)
        assert all(verdicts[node] != "rejected" for node in HONEST)
        reasons = [node.get("reason", {}).get("text", "") for node in line["clients"]]
        assert all(map(str.isprintable, reasons))
        assert all(1 <= node.get("num_examples", 1) <= 1_000_000 for node in line["clients"])
        assert math.isfinite(result.train_metrics_clientapp[index]["loss"])
        assert math.isfinite(result.evaluate_metrics_clientapp[index]["loss"])
    return sum(
        node["verdict"] == "rejected" for line in map(strict, lines) for node in line["clients"]
    )


def strict(line):
    def refuse(word):
        raise ValueError(f"{word} is no JSON")

    return json.loads(line, parse_constant=refuse)


@pytest.mark.parametrize("defense", ["fedavg", "median", "multi-krum"])
def test_no_reply_ends_a_run(defense, tmp_path, caplog):
    caplog.set_level("ERROR")
    rejected = sum(hostile_run(seed, defense, tmp_path / str(seed)) for seed in range(12))
    assert 0 < rejected < 12 * 3 * HOSTILE_NODES  # some of them pass the gate: then it is no wall
