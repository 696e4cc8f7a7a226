import json
import logging

import pytest
import torch
from torch import nn

from datadefense.core.compute import Compute
from datadefense.core.examples import Examples
from datadefense.core.local_training import Sgd
from datadefense.core.settings import SettingsError
from datadefense.runs import compute_choice
from datadefense.runs.compute_choice import Timed, chosen_compute, processor, race, settled
from datadefense.runs.config import Experiment, parse_toml, write_toml
from datadefense.runs.configure import configure
from datadefense.runs.parts import ComputeSettings
from datadefense.runs.run import resume, start
from datadefense.simulation.pool import Pool

QUICK = {
    "attack": "none",
    "rounds": "2",
    "warm.epochs": "0",
    "warm.accuracy_percent": "none",
    "clients_per_round": "3",
}


def timed(module=None):
    pictures = Examples(torch.randn(20, 3, 6, 6), torch.arange(20) % 3)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
    return Timed(module or net, pictures, Sgd(2, 8))


def with_seconds(monkeypatch, seconds):
    """Let the ways take these seconds, and count the races."""
    races = []

    def fake(calls):
        races.append(len(calls))
        return seconds[: len(calls)]

    monkeypatch.setattr(compute_choice, "race", fake)
    return races


def test_the_faster_way_is_chosen_and_kept(monkeypatch, tmp_path):
    races = with_seconds(monkeypatch, [1.0, 0.5, 0.7, 0.6])
    wanted = ComputeSettings(training_precision="auto", server_precision="auto")
    first = chosen_compute(wanted, timed(), tmp_path)
    assert first == (Compute("float32", "contiguous"), Compute("float32", "contiguous"))
    assert races == [4, 4]
    with_seconds(monkeypatch, [1.0, 1.0, 0.1, 0.1])
    assert chosen_compute(wanted, timed(), tmp_path) == first
    (*files,) = (tmp_path / "compute").iterdir()
    assert {json.loads(path.read_text())["place"] for path in files} == {1}


def test_what_is_hardly_faster_does_not_replace_the_usual(monkeypatch, tmp_path):
    with_seconds(monkeypatch, [1.0, 0.96])
    assert chosen_compute(ComputeSettings(), timed(), tmp_path)[0].memory_format == "channels_last"


@pytest.mark.parametrize("text", ["", "[]", '{"place": -1}', '{"place": 9}', '{"place": "0"}'])
def test_a_broken_file_is_measured_again(monkeypatch, tmp_path, text):
    with_seconds(monkeypatch, [1.0, 0.5])
    first = chosen_compute(ComputeSettings(), timed(), tmp_path)
    for path in (tmp_path / "compute").iterdir():
        path.write_text(text)
    races = with_seconds(monkeypatch, [1.0, 0.5])
    assert chosen_compute(ComputeSettings(), timed(), tmp_path) == first
    assert races == [2, 2]


def test_nothing_is_measured_where_nothing_is_open(monkeypatch, tmp_path):
    races = with_seconds(monkeypatch, [])
    fixed = ComputeSettings("bf16", "float32", "contiguous", "channels_last")
    assert chosen_compute(fixed, timed(), tmp_path) == (
        Compute("bf16", "contiguous"),
        Compute("float32", "channels_last"),
    )
    rows = Timed(nn.Linear(3, 2), Examples(torch.randn(4, 3), torch.arange(4) % 2), Sgd())
    assert chosen_compute(ComputeSettings(), rows, tmp_path) == (Compute(), Compute())
    assert races == []


def test_ways_are_really_timed():
    seconds = race([timed().step(Compute()), timed().forward(Compute("bf16"))], turns=2)
    assert all(0 < one < 10 for one in seconds)


def test_a_cache_that_cannot_be_written_costs_only_time(monkeypatch, tmp_path, caplog):
    (tmp_path / "compute").write_text("a file")
    with_seconds(monkeypatch, [1.0, 0.5])
    assert chosen_compute(ComputeSettings(), timed(), tmp_path)[0].memory_format == "contiguous"
    assert "is not kept" in caplog.text


def test_another_processor_is_said(tmp_path, caplog):
    begun = ComputeSettings("float32", "float32", "contiguous", "contiguous", "a 486")
    with caplog.at_level(logging.WARNING):
        assert chosen_compute(begun, timed(), tmp_path)[0] == Compute()
    assert f"began on a 486 and goes on on {processor()}" in caplog.text


def test_precision_counts_for_the_key_and_the_rest_does_not():
    plain = configure("digits-edge", "cpu", {})
    rough = configure("digits-edge", "cpu", {"training_precision": "bf16"})
    server = configure("digits-edge", "cpu", {"server_precision": "bf16"})
    other = configure("digits-edge", "cpu", {"compute.training_format": "contiguous"})
    assert len({plain.key(), rough.key(), server.key()}) == 3
    assert plain.key() == other.key()
    assert settled(Compute(), Compute()).processor == processor()
    assert rough.without_attack().key() != plain.without_attack().key()
    assert server.without_attack().key() == plain.without_attack().key()


@pytest.mark.parametrize("name", ["training_precision", "server_precision", "training_format"])
def test_an_unknown_choice_is_refused(name):
    with pytest.raises(SettingsError, match=f"{name} must be one of .*, got 'fp8'"):
        ComputeSettings(**{name: "fp8"})


def test_a_run_writes_its_choice_and_keeps_to_it(tmp_path, monkeypatch):
    experiment = configure("digits-edge", "cpu", QUICK | {"training_precision": "bf16"})
    with start(experiment, tmp_path / "run") as run, Pool(run.federation) as pool:
        list(run.rounds(pool))
        first = run.progress.params
    written = parse_toml((tmp_path / "run" / "config.toml").read_text()).compute
    assert written == run.experiment.compute
    assert written.training_precision == "bf16"
    assert "auto" not in (written.training_format, written.server_format)
    assert written.processor == processor()
    monkeypatch.setattr(compute_choice, "race", None)  # a resumed run measures nothing
    with resume(tmp_path / "run") as again:
        assert again.federation.compute == Compute("bf16", written.training_format)
        assert torch.equal(again.progress.params, first)


def test_bf16_gives_the_same_bits_whoever_trains(tmp_path):
    experiment = configure("digits-edge", "cpu", QUICK | {"training_precision": "bf16"})
    found = []
    for workers in (0, 2):
        place = tmp_path / str(workers)
        with start(experiment, place) as run, Pool(run.federation, workers) as pool:
            list(run.rounds(pool))
            found.append(run.progress.params)
    assert torch.equal(*found)


def test_a_configuration_without_the_part_has_its_defaults():
    assert parse_toml(write_toml(Experiment())).compute == ComputeSettings()
    assert parse_toml("seed = 1").compute == ComputeSettings()
