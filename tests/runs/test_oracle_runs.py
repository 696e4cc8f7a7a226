"""Runs of attackers who call the defense: their budget is stored, and they go on exactly."""

import json

import pytest
import torch
from tests.runs.quick import quick

from datadefense.attacks.oracle import LEVELS
from datadefense.runs.files import ROUNDS, SUMMARY, read_rounds
from datadefense.runs.run import resume, start
from datadefense.simulation.pool import Pool


def carried_out(run, workers, stop=None):
    with run, Pool(run.federation, workers) as pool:
        for record in run.rounds(pool):
            if record.round == stop:
                return None
        return run.finish(pool)


def told(folder):
    """All that is stored of the rounds but the times."""
    lines = [json.loads(line) for line in (folder / ROUNDS).read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


@pytest.mark.parametrize("knowledge", LEVELS)
def test_the_budget_of_a_run_and_of_one_that_was_interrupted(tmp_path, knowledge):
    pytest.importorskip("mlxtend")
    chosen = quick(
        attack="oracle",
        knowledge=knowledge,
        defense="multi-krum",
        rounds=4,
        clients_per_round=6,
        period=2,
        attackers=2,
        checkpoint_every=2,
    )
    whole = start(chosen, tmp_path / "whole")
    summary = carried_out(whole, 0)
    budgets = [record.attack.get("evasion_budget") for record in read_rounds(tmp_path / "whole")]
    assert budgets[1] is budgets[3] is None
    assert summary.evasion_budget == pytest.approx((budgets[0] + budgets[2]) / 2)
    stored = json.loads((tmp_path / "whole" / SUMMARY).read_text())
    assert stored["evasion_budget"] == summary.evasion_budget
    carried_out(start(chosen, tmp_path / "cut"), 0, stop=3)
    again = resume(tmp_path / "cut")
    assert again.progress.round == 2
    assert carried_out(again, 2).evasion_budget == summary.evasion_budget
    assert torch.equal(again.progress.params, whole.progress.params)
    assert told(tmp_path / "cut") == told(tmp_path / "whole")


def test_rounds_and_summaries_from_before_the_oracle_are_read(tmp_path):
    pytest.importorskip("mlxtend")
    folder = tmp_path / "old"
    summary = carried_out(start(quick(), folder), 0)
    assert summary.evasion_budget is None
    lines = [json.loads(line) for line in (folder / ROUNDS).read_text().splitlines()]
    for line in lines:
        assert "attack" not in line
    (folder / ROUNDS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [record.attack for record in read_rounds(folder)] == [{}, {}]
    with resume(folder) as run:
        assert run.done
