"""An experiment on Flower's own runtime: the same bits, and clear words where it cannot be."""

import os
import tomllib

import pytest
import torch
from safetensors.torch import load_file
from tests.runs.quick import quick

pytest.importorskip("flwr")
from typer.testing import CliRunner

from datadefense.cli.app import app
from datadefense.cli.run_flower import TOLD
from datadefense.flower.engine.launch import (
    Deployment,
    FlowerRunError,
    plain_line,
    run_app,
    write_app,
)
from datadefense.runs.config import parse_toml
from datadefense.runs.configure import configure
from datadefense.runs.files import CHECKPOINT, SUMMARY, read_rounds
from datadefense.runs.run import start
from datadefense.simulation.pool import Pool


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
    told = TOLD.fullmatch(plain_line(line))
    assert (told and told[1]) == round_
    assert plain_line(line).isprintable()
    assert len(plain_line("x" * 10_000)) < 2100


@pytest.mark.slow
def test_flowers_simulation_gives_the_very_bits_of_our_engine(tmp_path):
    pytest.importorskip("ray", reason="pip install 'datadefense[flower-simulation]'")
    chosen = configure("digits-edge", "cpu", {"defense": "datadefense", "rounds": "3"})
    run = start(chosen, tmp_path / "builtin")
    with Pool(run.federation) as pool:
        list(run.rounds(pool))
        run.finish(pool)
    lines = list(run_app(chosen, tmp_path / "flower", None, workers=2, deployment=None))
    assert any("round 3/3" in line for line in lines)
    ours, theirs = (load_file(tmp_path / one / CHECKPOINT) for one in ("builtin", "flower"))
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(theirs[name], tensor), name
    for one, other in zip(run.records, read_rounds(tmp_path / "flower"), strict=True):
        assert (one.weights, one.ma_percent) == (other.weights, other.ma_percent)
    assert (tmp_path / "flower" / SUMMARY).exists()


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
