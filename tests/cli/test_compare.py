"""``datadefense compare`` and ``export``."""

import csv
import dataclasses
import json
from types import MappingProxyType

import pytest
from tests.records import record_of
from tests.runs.summaries import SUMMARY

from datadefense.runs.config import write_toml
from datadefense.runs.configure import configure
from datadefense.runs.round_lines import round_line

ROUNDS = [
    record_of(
        1, ["a", 4], ["a"], [0.0, 1.0], ma_percent=90.0, asr_percent=2.0, seconds={"training": 1.0}
    ),
    record_of(2, [5, 4], ["b"], rejected=[("b", "NaN")]),
]


@pytest.fixture
def folder_of(tmp_path):
    def make(name, settings=MappingProxyType({}), **changes):
        folder = tmp_path / name
        folder.mkdir()
        configured = configure("digits-edge", "cpu", {"rounds": "2", **settings, **changes})
        (folder / "config.toml").write_text(write_toml(configured))
        (folder / "rounds.jsonl").write_text("".join(map(round_line, ROUNDS)))
        summary = dataclasses.replace(SUMMARY, rounds=2, **changes)
        (folder / "summary.json").write_text(json.dumps(dataclasses.asdict(summary)))
        return folder

    return make


def test_runs_side_by_side_and_where_they_differ(typed, folder_of, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    one, two = folder_of("one", defense="krum"), folder_of("two", defense="median")
    ended = typed("compare", one, two)
    assert ended.code == 0
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["one", "two"] in lines
    assert ["MA", "%", "91.5", "91.5"] in lines
    assert ["excess", "%", "79.0", "79.0"] in lines
    assert lines.count(["defense", "krum", "median"]) == 2
    assert not any(line[:1] == ["seed"] for line in lines)


def test_settings_of_defenses_are_compared_where_the_defense_is_the_same(typed, folder_of):
    one = folder_of("one", {"defense.num_malicious": "2", "federation.epochs": "3"}, defense="krum")
    two, three = folder_of("two", defense="krum"), folder_of("three", defense="median")
    lines = [line.split() for line in typed("compare", one, two).out.splitlines()]
    assert ["defense.num_malicious", "2", "1"] in lines
    assert ["federation.epochs", "3", "2"] in lines
    lines = [line.split() for line in typed("compare", one, three).out.splitlines()]
    assert ["federation.epochs", "3", "2"] in lines
    assert not any(line[:1] == ["defense.num_malicious"] for line in lines)


def test_names_are_whole_in_a_narrow_terminal(typed, folder_of, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    presets = ("datadefense-paper", "datadefense-released", "datadefense")
    ended = typed("compare", *(folder_of(name, defense=name) for name in presets))
    assert max(map(len, ended.out.splitlines())) <= 80
    for name in presets:
        assert name in ended.out.split()


def test_what_is_not_a_run_is_one_line(typed, tmp_path):
    ended = typed("compare", tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"error: {tmp_path} holds no run: there is no rounds.jsonl\n"


def rows_of(path):
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    return pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_rounds_as_a_table(typed, folder_of, tmp_path, ending):
    out = tmp_path / f"rounds.{ending}"
    assert typed("export", folder_of("run"), out).code == 0
    first, second = rows_of(out)
    empty = "" if ending == "csv" else None
    assert [float(first[key]) for key in ("round", "ma_percent", "attackers_weight")] == [1, 90, 0]
    assert float(first["excluded"]) == 1
    assert float(second["rejected"]) == 1
    for key in ("ma_percent", "attackers_weight", "excluded", "seconds_training"):
        assert second[key] == empty


def test_an_unknown_ending(typed, folder_of, tmp_path):
    ended = typed("export", folder_of("run"), tmp_path / "rounds.xlsx")
    assert ended.err == "error: the file must end in .csv, .jsonl or .parquet, got rounds.xlsx\n"
