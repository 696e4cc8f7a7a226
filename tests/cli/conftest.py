"""The command line as a user types it: in a process of its own, or, quicker, in this one."""

import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

from datadefense.cli.app import main

QUICK = [
    item
    for pair in (
        "clients=40",
        "test_examples=100",
        "clients_per_round=4",
        "federation.epochs=1",
        "attack.epochs=1",
        "period=2",
        "warm.accuracy_percent=20",
        "checkpoint_every=1",
    )
    for item in ("--set", pair)
]


@pytest.fixture
def quick():
    """Settings that make a run of digits-edge short."""
    return QUICK


@pytest.fixture
def datadefense(tmp_path, own_cache):
    environment = {**os.environ, "DATADEFENSE_CACHE": str(own_cache), "COLUMNS": "200"}
    environment.pop("DATADEFENSE_DATA", None)

    def call(*arguments, **options):
        command = [sys.executable, "-m", "datadefense", *map(str, arguments)]
        start = subprocess.Popen if options.pop("background", False) else subprocess.run
        return start(
            command,
            env=environment,
            cwd=tmp_path,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )

    return call


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


@pytest.fixture
def typed(tmp_path, own_cache, monkeypatch, capsys):
    """A function that runs a command in this process, with ``tmp_path`` as working folder."""
    monkeypatch.setenv("DATADEFENSE_CACHE", str(own_cache))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("DATADEFENSE_DATA", raising=False)
    monkeypatch.setattr("datadefense.cli.app._prepare", lambda workers: None)
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["datadefense", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Ended(ended.value.code, *capsys.readouterr())

    return call
