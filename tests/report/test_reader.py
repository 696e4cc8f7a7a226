import dataclasses
import json

import pytest
from tests.records import record_of
from tests.report.synthetic import Size, write_run
from tests.runs.summaries import SUMMARY

from datadefense.core.round_files import FileError
from datadefense.report.reader import read_run, weakened
from datadefense.runs.summary import summarise


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path / "cache"))
    return write_run(tmp_path / "run")


def test_a_missing_summary_is_computed(folder):
    run = read_run(folder)
    assert run.notes == []
    assert run.figures["rounds"] == 12
    assert run.figures["asr_floor_percent"] == 3.0
    assert run.figures["detector_hits_percent"] == 100.0
    assert run.floor.ma_percent == 89.9
    assert len(run.gallery) == 40


def test_a_summary_is_taken_as_it_is_unless_it_is_of_other_rounds(folder):
    stored = dataclasses.asdict(dataclasses.replace(SUMMARY, rounds=12))
    (folder / "summary.json").write_text(json.dumps(stored))
    assert read_run(folder).figures == stored | {"calm_ma_percent": 89.9}, "the floor's"
    (folder / "summary.json").write_text(json.dumps(stored | {"calm_ma_percent": 88.0}))
    assert read_run(folder).figures == stored | {"calm_ma_percent": 88.0}, "its own"
    for damage in (
        json.dumps(stored | {"rounds": 11}),
        json.dumps(stored)[:-9],
        "[]",
        "{}",
        "\x00",
    ):
        (folder / "summary.json").write_text(damage)
        assert read_run(folder).figures["ma_percent"] > 80
    (folder / "summary.json").write_text(json.dumps(stored | {"ma_percent": "high"}))
    assert isinstance(read_run(folder).figures["ma_percent"], float)


def test_without_a_floor_the_rest_is_there_and_the_run_is_not_finished(folder):
    (folder / "floor.json").unlink()
    run = read_run(folder)
    assert run.figures["asr_floor_percent"] is None
    assert run.figures["excess_asr_percent"] is None
    assert "not finished: there is no summary.json yet" in run.notes[0]


def test_a_run_that_is_under_way(folder):
    lines = (folder / "rounds.jsonl").read_text().splitlines(keepends=True)
    (folder / "rounds.jsonl").write_text("".join(lines[:5]) + lines[5][:40])
    run = read_run(folder)
    assert len(run.records) == 5
    assert run.notes == [
        "This run is not finished: 5 of 12 rounds are there.",
        "The last line of rounds.jsonl was cut off and is left out.",
    ]
    (folder / "rounds.jsonl").write_text("")
    assert read_run(folder).figures is None


def test_without_gallery_or_configuration(folder):
    (folder / "gallery.json").write_text('[{"id": 5}]')
    (folder / "config.toml").write_text("rounds = = 4")
    run = read_run(folder)
    assert run.gallery is None
    assert run.choices == {}
    assert run.figures is None
    assert any("no readable gallery.json" in note for note in run.notes)
    assert any("config.toml is missing or damaged" in note for note in run.notes)


def test_an_old_configuration_still_names_the_run(folder):
    text = (folder / "config.toml").read_text()
    (folder / "config.toml").write_text("no_longer_known = 3\n" + text)
    run = read_run(folder)
    assert run.choices["defense"] == "datadefense"
    assert run.figures is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "holds no run: there is no rounds.jsonl"),
        (b"\xff\xfe\n", "rounds.jsonl, line 1 is not a round: 'utf-8' codec can't"),
        (b"[" * 100_000 + b"\n", "rounds.jsonl, line 1 is not a round: maximum recursion"),
        (b"{}\n", "rounds.jsonl, line 1 is not a round: it has no round, clients, attackers, s"),
        (b"[]\n", "rounds.jsonl, line 1 is not a round: must be an object, got a list"),
        ("scores", "line 1 is not a round: scores must be an object, got a list"),
        ("theta", "line 1 is not a round: theta must be an object, got a list"),
        ("detector", "line 1 is not a round: detector must be an object or null, got a list"),
        ("clients", "line 1 is not a round: what is in clients must be an object, got a list"),
        ("round", "line 1 is not a round: round must be an integer, got a list"),
    ],
)
def test_rounds_that_cannot_be_read_are_an_error(folder, content, message):
    path = folder / "rounds.jsonl"
    if content is None:
        path.unlink()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        record = json.loads(path.read_text().splitlines()[0])
        record[content] = [["x"]]
        path.write_text(json.dumps(record) + "\n")
    with pytest.raises(FileError, match=message):
        read_run(folder)


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(FileError, match="is not a folder"):
        read_run(tmp_path / "nothing")


def test_what_is_computed_is_what_the_run_would_have_stored(folder):
    run = read_run(folder)
    from datadefense.runs.config import read_toml

    experiment = read_toml(folder / "config.toml")
    POISONED = frozenset(f"x{place}" for place in range(32, 40))
    summary = summarise(experiment, run.records, run.floor, POISONED, None)
    assert run.figures == dataclasses.asdict(summary)


def test_a_defense_without_a_detector_needs_no_gallery(tmp_path):
    run = read_run(write_run(tmp_path / "run", Size(rounds=3), defense="median"))
    assert run.notes == []
    assert run.gallery is None


def test_a_page_says_in_how_many_rounds_the_defense_lacked_something():
    plain, lacking = record_of(report={}), record_of(report={"weakened": "no poison"})
    assert weakened([plain, plain]) == []
    assert weakened([lacking, plain, lacking]) == [
        "In 2 of 3 rounds the defense was weakened: no poison."
    ]
