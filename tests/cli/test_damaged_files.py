"""Commands that read a run or a store which somebody or something has damaged: one sentence."""

import json

import pytest
from tests.report.synthetic import write_run

from datadefense.cli.app import main

DAMAGE = {
    "nested": b"[" * 100_000,
    "not text": b"\xff\xfe",
    "markup": b'{"round": "<b>"}',
    "a huge number": b'{"round": ' + b"9" * 5000 + b"}",
    "a list": b'[{"id": 3}]',
}


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["datadefense", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, capsys.readouterr()

    return run


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("command", ["report", "compare", "export"])
def test_a_round_is_named_by_its_line(tmp_path, call, command, damage):
    path = write_run(tmp_path / "run") / "rounds.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], damage, b"\n", *lines[2:]]))
    more = ["rounds.csv"] if command == "export" else []
    code, out = call(command, "run", *more)
    assert code == 2
    assert out.err.startswith("error: run/rounds.jsonl, line 3 is not a round: ")
    assert len(out.err.splitlines()) == 1


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("name", ["summary.json", "floor.json", "gallery.json", "config.toml"])
def test_what_a_report_can_do_without_is_left_out_and_named(tmp_path, call, name, damage):
    folder = write_run(tmp_path / "run")
    (folder / name).write_bytes(damage)
    assert call("report", "run")[0] == 0
    code, out = call("compare", "run", "run")
    assert code == 0
    assert name in out.out
    assert out.err == ""


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_configuration_that_cannot_be_read_ends_a_resume(tmp_path, call, damage):
    folder = write_run(tmp_path / "run")
    (folder / "config.toml").write_bytes(b"x = " + damage)
    code, out = call("resume", "run")
    assert code == 2
    assert out.err.startswith("error: run/config.toml: no readable configuration: ")
    assert len(out.err.splitlines()) == 1


@pytest.mark.parametrize("report", [{"rejected": 3}, {"marked": [[]]}, {"marked": 3, "gamma": {}}])
def test_a_report_of_another_form_ends_nothing(tmp_path, call, report):
    """A defense of somebody's own may report anything under any name."""
    path = write_run(tmp_path / "run") / "rounds.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line["report"] = report
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for command in (["report", "run"], ["compare", "run", "run"], ["export", "run", "r.jsonl"]):
        code, out = call(*command)
        assert (code, out.err) == (0, "")
