import os
import subprocess
import sys

import pytest

from datadefense.cli.app import main
from datadefense.defenses import DEFENSES


def call(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["datadefense", *arguments])
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_the_list_shows_every_defense_and_setting(monkeypatch, capsys):
    assert call(monkeypatch, "list", "defenses") == 0
    out = capsys.readouterr().out
    for name in DEFENSES:
        assert name in out
    for setting in ("num_malicious=1", "weighting=uniform", "top_fraction=0.1", "norm_bound=2.0"):
        assert setting in out


def test_the_version(monkeypatch, capsys):
    assert call(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == "datadefense 0.1.0\n"


def test_help_says_what_arguments_are(monkeypatch, capsys):
    assert call(monkeypatch, "export", "--help") == 0
    assert "ends in .csv, .jsonl or .parquet" in capsys.readouterr().out


def test_help_is_quick():
    """Half a second of CPU time is the promise, which a busy machine does not lengthen much."""
    times = []
    for _ in range(3):
        start = os.times()
        done = subprocess.run(
            [sys.executable, "-m", "datadefense", "--help"],
            capture_output=True,
            text=True,
            check=True,
        )
        ended = os.times()
        times.append(
            ended.children_user
            + ended.children_system
            - start.children_user
            - start.children_system
        )
    assert "aggregate" in done.stdout
    assert min(times) < 0.5
