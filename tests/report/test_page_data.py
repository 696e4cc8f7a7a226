import dataclasses
import json

import pytest
from tests.report.synthetic import Size, write_run

from datadefense.report.page_data import events, labels, page_data, theta, title_of
from datadefense.report.reader import read_run


@pytest.fixture
def run(tmp_path):
    return read_run(write_run(tmp_path / "run"))


def changed(run, name="run", **choices):
    return dataclasses.replace(run, name=name, choices={**run.choices, **choices})


def test_the_curves_are_those_of_the_rounds(run):
    (data,) = page_data([run])["runs"]
    assert data["rounds"] == list(range(1, 13))
    assert data["attacked"] == [1, 6, 11]
    scores = data["scores"]
    assert scores["ma_percent"] == pytest.approx([r.ma_percent for r in run.records], rel=1e-3)
    assert scores["asr_percent"] == pytest.approx([r.asr_percent for r in run.records], rel=1e-3)
    assert data["seconds"]["attack"] == [0.5 if r.attackers else 0 for r in run.records]
    assert data["seconds"]["evaluation"] == [None] * 12
    assert data["outcome"] == "kept out"
    assert data["cells"][0] == "datadefense"
    assert data["theta"] == {
        "worse_on_clean": [0.3] * 12,
        "learned_poison": [1] * 12,
        "moved_far": [0.3] * 12,
    }


def test_it_is_plain_json(run):
    json.dumps(page_data([run]), allow_nan=False)


def test_labels_say_what_runs_differ_in(run):
    assert labels([run]) == ["datadefense"]
    assert labels([run, changed(run, defense="krum")]) == ["datadefense", "krum"]
    assert labels([run, changed(run, seed=1)]) == ["datadefense, seed 0", "datadefense, seed 1"]
    assert labels([run, changed(run, "other", **{"federation.alpha": 1})]) == [
        "datadefense (run)",
        "datadefense (other)",
    ]
    assert labels([run, run]) == ["datadefense (run) (1)", "datadefense (run) (2)"]
    nameless = dataclasses.replace(run, choices={}, figures=None)
    assert labels([nameless]) == ["unknown"]


def test_labels_name_the_task_and_the_rounds(run):
    other = changed(run, task="emnist-ardis", **{"federation.rounds": 5})
    assert labels([run, other]) == [
        "datadefense, digits-edge, 12 rounds",
        "datadefense, emnist-ardis, 5 rounds",
    ]
    bare = dataclasses.replace(run, choices={})
    assert labels([bare, other]) == labels([run, other]), "a summary names them too"


def test_titles(run):
    assert title_of([run]) == "digits-edge: pgd-replacement against datadefense"
    assert title_of([changed(run, attack="none")]) == "digits-edge: nobody attacks datadefense"
    both = [run, changed(run, defense="krum", task="cifar10-trigger", attack="pgd")]
    assert title_of(both) == "Several tasks: several attacks against datadefense, krum"


def test_theta_and_events(run):
    records = list(run.records)
    records[3] = dataclasses.replace(records[3], report={"held": "nobody came"}, theta={})
    assert events(records) == [(4, "nobody came")]
    lines = theta(records)
    assert [line[3] for line in lines.values()] == [None] * 3
    assert theta([]) == {}


def test_runs_share_their_pictures(run):
    data = page_data([run, changed(run, seed=1)])
    assert len(data["pictures"]) == 40
    assert data["overall"] == ("datadefense, seed 0 and datadefense, seed 1 kept the backdoor out.")


def test_a_run_without_rounds(tmp_path):
    folder = write_run(tmp_path / "run", Size(rounds=2))
    (folder / "rounds.jsonl").write_text("")
    (data,) = page_data([read_run(folder)])["runs"]
    assert data["clients"] is None
    assert data["detector"] is None
    assert data["verdict"] == "No round has been evaluated yet."
