"""The demo's round is real: undefended the backdoor is in after one round, defended it is not."""

import json

import pytest
import torch

from datadefense.cli.demo import run_demo
from datadefense.defenses import DEFENSES, FedAvg, Krum, Median
from datadefense.simulation.one_round import attacked_round, try_defenses

pytest.importorskip("mlxtend")
pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def attacked():
    return attacked_round(seed=0)


def test_the_attack_works_and_robust_rules_stop_it(attacked):
    accuracy, floor = attacked.score(attacked.round.global_params)
    assert accuracy > 80
    assert floor < 5
    fedavg, krum, median = try_defenses(attacked, [FedAvg(), Krum(), Median()])
    assert fedavg.asr_percent > 90
    assert fedavg.attacker_weight == pytest.approx(166 / 886)
    for defended in (krum, median):
        assert defended.asr_percent < 10
        assert defended.ma_percent > 80


def test_nobody_shares_data(attacked):
    images = {
        "test": attacked.test.inputs,
        "root": attacked.server.clean.inputs,
        "backdoor": attacked.backdoor_test.inputs,
        "unmarked": attacked.server.defense_set.examples.inputs[len(attacked.server.clean) :],
    }
    rows = [tuple(row.flatten().tolist()) for part in images.values() for row in part]
    assert len(set(rows)) == len(rows)
    assert len(attacked.backdoor_test) == 57


def test_the_same_seed_gives_the_same_bits(attacked):
    again = attacked_round(seed=0)
    assert torch.equal(again.round.updates, attacked.round.updates)
    other = attacked_round(seed=1)
    assert not torch.equal(other.round.updates, attacked.round.updates)


def test_the_demo_writes_what_it_shows(tmp_path, capsys):
    run_demo(tmp_path / "demo", seed=0)
    record = json.loads((tmp_path / "demo" / "round.json").read_text())
    assert [outcome["defense"] for outcome in record["outcomes"]] == list(DEFENSES)
    assert (tmp_path / "demo" / "round.png").read_bytes().startswith(b"\x89PNG")
    out = capsys.readouterr().out
    assert all(name in out for name in DEFENSES)
