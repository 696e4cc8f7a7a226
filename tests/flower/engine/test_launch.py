"""An experiment on Flower's own runtime: the same bits, and clear words where it cannot be."""

import os
import tomllib
from pathlib import Path
from uuid import uuid4

import pytest
import torch
from safetensors.torch import load_file
from tests.flower.engine.listening import listening
from tests.records import record_of
from tests.runs.quick import quick

pytest.importorskip("flwr")
from typer.testing import CliRunner

from datadefense.cli.app import app
from datadefense.flower.engine.launch import (
    Deployment,
    FlowerRunError,
    plain_line,
    run_app,
    write_app,
)
from datadefense.flower.engine.progress import round_in_log_line, round_log_line
from datadefense.runs.config import parse_toml
from datadefense.runs.files import CHECKPOINT, SUMMARY, read_rounds
from datadefense.runs.run import start
from datadefense.simulation.pool import Pool

HAS_PROC = Path("/proc/net/tcp").exists()


def test_the_app_carries_the_whole_experiment(tmp_path):
    chosen = quick(defense="multi-krum", seed=3)
    folder = write_app(tmp_path / "app", chosen, tmp_path / "out", None)
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    config = project["tool"]["flwr"]["app"]["config"]
    assert parse_toml(config["experiment"]) == chosen
    assert config["out"] == str(tmp_path / "out")
    assert project["project"]["dependencies"] == []


@pytest.mark.parametrize(
    ("line", "round_"),
    [
        ("\x1b[92mINFO \x1b[0m:      round 4/6  MA 44.0 %\n", "round 4/6  MA 44.0 %"),
        ("INFO :\tround 4/6  MA 44.0 %", "round 4/6  MA 44.0 %"),
        ("WARNING :   client 3: error 2: INFO :   round 9/9  MA 99 %\n", None),
        ("INFO :   round 1/2 [bold]\x1b]0;owned\x07\x9b31m\n", "round 1/2 [bold]?]0;owned??31m"),
        ("(ClientAppActor pid=1) INFO :   round 9/9\n", None),
    ],
)
def test_a_line_of_the_log_is_shown_as_what_it_is(line, round_):
    assert round_in_log_line(plain_line(line)) == round_
    assert plain_line(line).isprintable()
    assert len(plain_line("x" * 10_000)) < 2100


@pytest.mark.parametrize("scores", [{}, {"ma_percent": 44.0, "asr_percent": 7.25}])
@pytest.mark.parametrize("attackers", [(), ("bad",)])
def test_a_round_that_is_told_is_heard(scores, attackers):
    told = round_log_line(record_of(4, attackers=attackers, **scores), 6)
    assert round_in_log_line(plain_line(f"INFO :      {told}\n")) == told
    assert told.startswith("round 4/6")
    assert ("MA 44.0 %  ASR 7.2 %" in told) == bool(scores)
    assert told.endswith("attacked") == bool(attackers)


@pytest.mark.slow
def test_flowers_simulation_gives_the_very_bits_of_our_engine(tmp_path, monkeypatch):
    """And listens on loopback only: the SuperLink, and every process of Ray."""
    pytest.importorskip("ray", reason="pip install 'datadefense[flower-simulation]'")
    name, value = "DATADEFENSE_TEST_MARK", uuid4().hex
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("RAY_ADDRESS", "192.0.2.1:6379")  # another's cluster is none of ours
    chosen = quick(defense="datadefense", rounds=3)
    run = start(chosen, tmp_path / "builtin")
    with Pool(run.federation) as pool:
        list(run.rounds(pool))
        run.finish(pool)
    lines, found = [], set()
    for line in run_app(chosen, tmp_path / "flower", None, workers=2, deployment=None):
        lines.append(line)
        found |= listening(f"{name}={value}") if HAS_PROC else set()
    assert any("round 3/3" in line for line in lines)
    ours, theirs = (load_file(tmp_path / one / CHECKPOINT) for one in ("builtin", "flower"))
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(theirs[name], tensor), name
    for one, other in zip(run.records, read_rounds(tmp_path / "flower"), strict=True):
        assert (one.weights, one.ma_percent) == (other.weights, other.ma_percent)
    assert (tmp_path / "flower" / SUMMARY).exists()
    for part in ("flower-superlink", "gcs_server", "raylet", "ray::ClientAppActor"):
        assert any(part in command for command, _, _ in found) or not HAS_PROC, part
    assert [one for one in found if not one[1].is_loopback] == []


def test_a_superlink_that_is_not_there_is_said(tmp_path):
    nowhere = Deployment("127.0.0.1:1")
    with pytest.raises(FlowerRunError, match="never begun"):
        list(run_app(quick(), tmp_path / "out", None, workers=1, deployment=nowhere))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--superlink", "localhost:1"], "need --engine flower"),
        (["--engine", "horses"], "engine must be one of builtin, flower"),
        (["--engine", "flower", "--log", "mlflow"], "need --engine builtin"),
        (["--engine", "flower", "--defense", "no-such"], "no-such"),
        (["--engine", "flower", "--defense", "bulyan", "--set", "clients_per_round=5"], "5"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_started(tmp_path, words, said):
    command = ["run", "--task", "digits-edge", "--out", str(tmp_path / "out"), *words]
    result = CliRunner().invoke(app, command)
    assert result.exit_code != 0
    assert said in str(result.exception)
    assert os.listdir(tmp_path) == []
