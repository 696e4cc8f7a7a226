"""The store: what goes in comes out, whatever a crash or a hand did to the file."""

import dataclasses
import json
import re
import time
from pathlib import Path

import pytest
from tests.records import detector_of, record_of
from tests.runs.summaries import SUMMARY

from datadefense.attacks import Pgd
from datadefense.core.round_files import FileError
from datadefense.defenses import Krum
from datadefense.runs import config
from datadefense.runs.config import Experiment, experiment_of
from datadefense.schedules import FixedFrequency
from datadefense.studies.store import Result, append, curves_of, read_store, result_of


def result(name, seed=0):
    """Return a result of a run that has a name of one letter."""
    summary = dataclasses.replace(SUMMARY, seed=seed)
    run = Experiment(seed=ord(name), defense=Krum(num_malicious=2))
    return Result(run.key(), run.changes(), summary, {"gap_min": [[1, -0.5]]})


def by_key(*results):
    return {one.key: one for one in results}


record = record_of


@pytest.fixture
def store(tmp_path):
    return tmp_path / "results" / "runs.jsonl"


def test_there_and_back(store):
    assert read_store(store) == {}
    for name in ("b", "a"):
        append(store, result(name))
    assert list(read_store(store).items()) == list(by_key(result("b"), result("a")).items())


def test_a_run_is_kept_with_its_key_its_changes_and_its_curves(store):
    run = Experiment(attack=Pgd(), schedule=FixedFrequency(last=3), defense=Krum(num_malicious=2))
    kept = result_of(run, SUMMARY, [record(1, asr_percent=7.0)], frozenset())
    append(store, kept)
    (found,) = read_store(store).values()
    assert (found.key, found.summary) == (run.key(), SUMMARY)
    assert experiment_of(found.config) == run
    assert found.curves == {"asr_percent": [[1, 7.0]]}


def test_the_last_result_of_a_key_wins(store):
    for seed in (1, 2):
        append(store, result("a", seed))
    assert read_store(store) == by_key(result("a", 2))
    assert len(store.read_text().splitlines()) == 2


def test_a_last_line_that_was_cut_off_is_left_out_and_gives_way(store):
    """Cut anywhere, also just before its end: what is read is what stays."""
    append(store, result("a"))
    first = store.stat().st_size
    append(store, result("b"))
    whole = store.read_bytes()
    for cut in [*range(first, len(whole), 40), len(whole) - 2, len(whole) - 1]:
        store.write_bytes(whole[:cut])
        assert read_store(store) == by_key(result("a"))
        append(store, result("c"))
        assert read_store(store) == by_key(result("a"), result("c"))


@pytest.mark.parametrize("broken", ["", "{", "[]", "7", '{"key": "b"}', '{"summary": {"a": 1}}'])
@pytest.mark.parametrize("last", [False, True])
def test_a_line_that_is_no_result_is_named(store, broken, last):
    append(store, result("a"))
    behind = "" if last else store.read_text()
    store.write_text(store.read_text() + broken + "\n" + behind)
    with pytest.raises(FileError, match=r"runs.jsonl, line 2 is not a result: "):
        read_store(store)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds": "<b>"}, "rounds must be an integer, got '<b>'"),
        ({"rounds": True}, "rounds must be an integer, got True"),
        ({"ma_percent": [1]}, "ma_percent must be a number, got a list"),
        ({"ma_percent": None}, "ma_percent must be a number, got None"),
        ({"defense": 7}, "defense must be a text, got 7"),
        ({"lifespan_rounds": 1.5}, "lifespan_rounds must be an integer or null, got 1.5"),
    ],
)
def test_a_summary_of_other_types_is_an_error(store, changes, message):
    values = json.loads(json.dumps(dataclasses.asdict(result("a"))))
    values["summary"] |= changes
    store.parent.mkdir()
    store.write_text(json.dumps(values) + "\n")
    with pytest.raises(
        FileError, match=f"runs.jsonl, line 1 is not a result: {re.escape(message)}"
    ):
        read_store(store)


@pytest.mark.parametrize("broken", [b"[" * 100_000, b"\xff", b'{"key": ' + b"9" * 5000 + b"}"])
def test_a_line_that_no_reader_takes_is_named(store, broken):
    append(store, result("a"))
    store.write_bytes(store.read_bytes() + broken + b"\n")
    with pytest.raises(FileError, match=r"runs.jsonl, line 2 is not a result: ") as raised:
        read_store(store)
    assert len(str(raised.value).splitlines()) == 1


def test_a_field_that_we_do_not_know_is_an_error(store):
    append(store, result("a"))
    store.write_text(json.dumps(json.loads(store.read_text()) | {"colour": "red"}) + "\n")
    with pytest.raises(FileError, match="line 1 is not a result: .*colour"):
        read_store(store)


@pytest.mark.parametrize(
    "changes",
    [
        {"key": result("b").key},
        {"key": "0" * 16},
        {"key": 7},
        {"config": {}},
        {"config": result("b").config},
        {"config": result("a").config | {"attack": {"name": "pgd"}}},
        {"config": result("a").config | {"colour": "red"}},
        {"config": result("a").config | {"federation": {"rounds": 0}}},
        {"config": result("a").config | {"defense": 7}},
        {"config": [1]},
    ],
)
def test_a_key_that_is_not_of_its_configuration_is_an_error(store, changes):
    append(store, result("b"))
    values = json.loads(json.dumps(dataclasses.asdict(result("a")) | changes))
    store.write_text(store.read_text() + json.dumps(values) + "\n")
    with pytest.raises(FileError, match=r"runs.jsonl, line 2 is not a result: "):
        read_store(store)


def test_keys_of_earlier_revisions_are_known(store, monkeypatch):
    """Raising a revision asks for new runs; what was measured before stays readable."""
    before = result("a")
    append(store, before)
    monkeypatch.setattr(config, "ENGINE", config.ENGINE + 2)
    after = result("a")
    assert after.key != before.key
    append(store, after)
    assert read_store(store) == by_key(before, after)
    monkeypatch.undo()
    with pytest.raises(FileError, match=f"line 2 is not a result: its key is '{after.key}', that"):
        read_store(store)


def test_the_committed_store_has_the_keys_of_its_configurations():
    """And reading it is cheap: 0.2 s for a thousand lines where this was written."""
    path = Path(__file__).parents[2] / "results" / "runs.jsonl"
    started = time.process_time()
    results = read_store(path)
    assert time.process_time() - started < 5
    assert len(results) > 500
    for key, one in results.items():
        assert key in list(experiment_of(one.config).keys())


def test_curves_have_the_rounds_that_were_evaluated():
    records = [record(1, ma_percent=80.0, asr_percent=5.0), record(2), record(3, ma_percent=81.0)]
    assert curves_of(records, frozenset()) == {
        "ma_percent": [(1, 80.0), (3, 81.0)],
        "asr_percent": [(1, 5.0)],
    }


def test_gaps_are_an_attackers_weight_less_each_honest_clients():
    attacked = record(
        4, clients=[3, "bad-0", 7, "bad-1"], attackers=["bad-0", "bad-1"], weights=[0.5, 0, 0.25, 1]
    )
    gaps = [0 - 0.5, 0 - 0.25, 1 - 0.5, 1 - 0.25]
    assert curves_of([attacked], frozenset()) == {
        "gap_min": [(4, min(gaps))],
        "gap_mean": [(4, sum(gaps) / 4)],
        "gap_max": [(4, max(gaps))],
    }


def test_a_rejected_attacker_has_no_weight():
    rejected = record(1, clients=[3, 7], attackers=["bad"], weights=[0.75, 0.25])
    curves = curves_of([rejected], frozenset())
    assert [curves[name] for name in ("gap_min", "gap_mean", "gap_max")] == [
        [(1, -0.75)],
        [(1, -0.5)],
        [(1, -0.25)],
    ]


def test_there_is_no_gap_without_weights_attackers_or_honest_clients():
    records = [
        record(1, clients=[3, "bad"], attackers=["bad"], weights=None),
        record(2, clients=[3, 7], attackers=[], weights=[0.5, 0.5]),
        record(3, clients=["bad"], attackers=["bad"], weights=[1.0]),
    ]
    assert curves_of(records, frozenset()) == {}


def test_hits_are_the_share_of_the_poisoned_that_was_marked():
    marks = ([0, 4, 5], None, [], [6, 5, 4, 1])
    records = [
        record(index, detector=None if marked is None else detector_of([0.5] * 8, marked))
        for index, marked in enumerate(marks, start=1)
    ]
    curves = curves_of(records, frozenset("4567"))
    assert curves == {"hits_percent": [(1, 50.0), (3, 0.0), (4, 75.0)]}
    assert curves_of(records, frozenset()) == {}


def test_values_are_kept_to_four_digits():
    curves = curves_of([record(1, ma_percent=200 / 3, asr_percent=0.001234567)], frozenset())
    assert curves == {"ma_percent": [(1, 66.67)], "asr_percent": [(1, 0.001235)]}
