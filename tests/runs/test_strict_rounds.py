"""rounds.jsonl and summary.json are strict JSON whatever a defense of somebody's own computes."""

import json

import pytest
from tests.flower.test_audit import Odd, refuse
from tests.simulation.tiny import tiny_federation
from tests.studies.test_store import record

from datadefense import Server
from datadefense.report.page import write_run_page
from datadefense.runs.config import Experiment
from datadefense.runs.files import read_rounds
from datadefense.runs.metrics import figures_of
from datadefense.runs.parts import Evaluation, FederationSettings
from datadefense.runs.run import restore
from datadefense.runs.summary import attacker_weights, honest_weights
from datadefense.simulation.pool import Pool
from datadefense.studies.store import curves_of

ODD = Experiment(
    defense=Odd(),
    federation=FederationSettings(clients=12, clients_per_round=5, rounds=4),
    evaluation=Evaluation(checkpoint_every=2),
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path / "cache"))
    made = tmp_path / "run"
    made.mkdir()
    (made / "rounds.jsonl").touch()
    return made


def odd_run(folder):
    return restore(ODD, folder, tiny_federation(), Server())


def test_evidence_that_is_not_finite_is_left_out_and_stays_so(folder):
    with odd_run(folder) as run, Pool(run.federation) as pool:
        for one in run.rounds(pool):
            if one.round == 3:
                break
    with odd_run(folder) as run, Pool(run.federation) as pool:
        list(run.rounds(pool))
        run.finish(pool, write_run_page)
        assert read_rounds(folder) == run.records
    lines = (folder / "rounds.jsonl").read_text().splitlines()
    for line in lines:
        values = json.loads(line, parse_constant=refuse)
        assert not any("evidence" in client for client in values["clients"])
        assert values["report"]["worst"] is None
    assert len(lines) == 4
    json.loads((folder / "summary.json").read_text(), parse_constant=refuse)
    assert "report" in (folder / "report.html").read_text()


def test_weights_that_are_no_numbers_count_for_nothing():
    odd = record(1, clients=["bad", 1, 2], attackers=["bad"], weights=[None, None, 0.5])
    assert attacker_weights([odd]) == [0.0]
    assert honest_weights([odd]) == [0.5]
    assert figures_of(odd)["attackers_weight"] == 0
    assert curves_of([odd], frozenset())["gap_mean"] == [(1, -0.5)]
    without = record(1, clients=["bad", 1, 2], attackers=["bad"])
    assert without.known_weights() == {}
    assert attacker_weights([without]) == honest_weights([without]) == []
