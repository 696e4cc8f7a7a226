"""Trackers are told of every round; fakes stand in for what is not installed."""

import sys
from types import SimpleNamespace

import pytest
from tests.records import record_of
from tests.runs.quick import quick

from datadefense.cli import trackers
from datadefense.core.settings import SettingsError
from datadefense.runs.config import Experiment
from datadefense.runs.run import start
from datadefense.simulation.pool import Pool

RECORD = record_of(
    7,
    clients=["a", 1, 2],
    attackers=["a", "rejected"],
    weights=[0.25, 0.75, 0.0],
    ma_percent=90.0,
    seconds={"training": 1.5},
)
FIGURES = {
    "ma_percent": 90.0,
    "clients": 3,
    "attackers": 2,
    "rejected": 0,
    "attackers_weight": 0.25,
    "excluded": 1,
    "seconds_training": 1.5,
}


class Fake:
    """Stands in for all three libraries and writes down what it is told."""

    def __init__(self):
        self.told, self.closed, self.config = [], 0, None

    def add_text(self, name, text):
        self.config = text

    def add_scalar(self, name, value, step):
        self.told.append((step, name, value))

    def close(self):
        self.closed += 1

    finish = close

    def log(self, figures, step):
        self.told += [(step, *item) for item in figures.items()]

    def log_metrics(self, figures, step):
        self.log(figures, step)

    def log_params(self, config):
        self.config = config

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@pytest.fixture
def fake(monkeypatch):
    one = Fake()
    modules = {
        "torch.utils.tensorboard": SimpleNamespace(SummaryWriter=lambda folder: one),
        "mlflow": SimpleNamespace(
            start_run=lambda run_name: one, log_params=one.log_params, log_metrics=one.log_metrics
        ),
        "wandb": SimpleNamespace(init=lambda **words: one.log_params(words["config"]) or one),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return one


@pytest.mark.parametrize("name", trackers.TRACKERS)
def test_each_is_told_of_the_round_and_of_the_configuration(fake, name, tmp_path):
    trackers.check([name])
    with trackers.tracked([name], quick(rounds=77), tmp_path) as tell:
        tell(RECORD)
        assert fake.closed == 0
    assert sorted(fake.told) == sorted((7, *item) for item in FIGURES.items())
    told = str(fake.config)
    assert "federation.rounds" in told
    assert "77" in told
    assert "digits-edge" in told
    if name != "tensorboard":
        assert fake.config["attack"] == "pgd-replacement"
        assert fake.config["attack.epochs"] == 1
        assert fake.config["server.folder"] == "none"
    assert fake.closed == 1


def test_several_at_once(fake, tmp_path):
    with trackers.tracked(list(trackers.TRACKERS), Experiment(), tmp_path) as tell:
        tell(RECORD)
    assert len(fake.told) == 3 * len(FIGURES)
    assert fake.closed == 3


def test_one_that_refuses_to_begin(fake, monkeypatch, tmp_path):
    def refuse(**_):
        raise RuntimeError("no such server")

    monkeypatch.setattr(sys.modules["wandb"], "init", refuse)
    with (
        pytest.raises(SettingsError, match="--log wandb cannot begin: no such server"),
        trackers.tracked(["tensorboard", "wandb"], Experiment(), tmp_path),
    ):
        pass
    assert fake.closed == 1


def test_unknown_or_missing_is_said_before_anything_runs(typed, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    ended = typed("run", "--task", "digits-edge", "--log", "wandb", "--out", tmp_path / "run")
    assert ended.code == 2
    assert ended.err == "error: --log wandb needs it: pip install 'datadefense[wandb]'\n"
    ended = typed("run", "--task", "digits-edge", "--log", "excel", "--out", tmp_path / "run")
    assert "log must be one of tensorboard, mlflow, wandb, got 'excel'" in ended.err
    assert not (tmp_path / "run").exists()


def test_a_run_that_goes_on_tells_of_the_rounds_that_are_left(fake, typed, tmp_path):
    folder = tmp_path / "run"
    with start(quick(rounds=3), folder) as run, Pool(run.federation) as pool:
        next(run.rounds(pool))
    ended = typed("resume", folder, "--workers", "0", "--log", "mlflow")
    assert ended.code == 0
    assert {index for index, *_ in fake.told} == {2, 3}
    assert fake.closed == 1
