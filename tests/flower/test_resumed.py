"""A folder that another run has begun: refused with a sentence; its own run goes on."""

import numpy as np
import pytest
import torch
from tests.flower.fake_grid import FakeGrid, model_in, record, reply
from tests.flower.test_folder import contents, rounds
from tests.flower.test_strategy import HONEST, START, started, values

from datadefense import StateError, load_state, save_state
from datadefense.core.run_state import RunState
from datadefense.flower import DefendedStrategy
from datadefense.flower.folder import STATE


def run_app(app, folder, *, num_rounds=1, start=START, defense="multi-krum", **choices):
    grid = FakeGrid(HONEST, app)
    strategy = DefendedStrategy(defense, folder=folder, wait_seconds=0, **choices)
    return grid, strategy.start(grid, record(start), num_rounds, timeout=0)


def test_another_defense_does_not_get_the_first_ones_model(tmp_path):
    started(HONEST, "multi-krum", rounds=3, folder=tmp_path)
    before = contents(tmp_path)
    with pytest.raises(StateError) as refused:
        started(HONEST, "median", rounds=3, folder=tmp_path)
    said = str(refused.value)
    assert f"{tmp_path / STATE} is no state of this run" in said
    assert "its defense is 'multi-krum', this one's 'median'" in said
    assert "start anew: choose another place for the state" in said
    assert contents(tmp_path) == before
    started(HONEST, "multi-krum", rounds=4, folder=tmp_path)
    assert rounds(tmp_path) == [1, 2, 3, 4]


def test_other_tensors_are_another_run(tmp_path):
    started(HONEST, folder=tmp_path)
    with pytest.raises(StateError, match="tensor 'more' is only in this run"):
        started(HONEST, start={**START, "more": np.zeros(1, np.float32)}, folder=tmp_path)


def test_another_app_with_the_same_defense_is_refused(tmp_path):
    run_app("us/hospital", tmp_path)
    with pytest.raises(StateError, match="its run is 'us/hospital', this one's 'them/bank'"):
        run_app("them/bank", tmp_path, num_rounds=2)
    _, result = run_app("us/hospital", tmp_path, num_rounds=2)
    assert sorted(result.train_metrics_clientapp) == [2]


def test_a_name_of_the_run_stands_for_the_apps(tmp_path):
    run_app("us/hospital", tmp_path, run="march")
    run_app("us/hospital-2", tmp_path, num_rounds=2, run="march")
    with pytest.raises(StateError, match="its run is 'march', this one's 'april'"):
        run_app("us/hospital", tmp_path, num_rounds=3, run="april")
    assert rounds(tmp_path) == [1, 2]


def test_an_app_that_draws_its_first_model_anew_is_still_the_same(tmp_path):
    run_app("us/hospital", tmp_path, num_rounds=2)
    drawn = {name: array + np.float32(5) for name, array in START.items()}
    _, rest = run_app("us/hospital", tmp_path, num_rounds=3, start=drawn)
    _, whole = run_app("us/hospital", tmp_path / "whole", num_rounds=3)
    assert np.array_equal(values(rest)["w"], values(whole)["w"])


def test_where_it_is_kept_and_that_nothing_is_left_is_in_the_log(tmp_path, monkeypatch, caplog):
    """Flower runs an app in a folder of its own: a relative path says nothing."""
    caplog.set_level("INFO", "flwr")
    monkeypatch.chdir(tmp_path)
    run_app("us/hospital", "defended", num_rounds=2)
    assert f"state and audit trail are kept in {tmp_path / 'defended'}" in caplog.text
    run_app("us/hospital", "defended", num_rounds=3)
    assert f"going on after round 2 of {tmp_path / 'defended'}" in caplog.text
    assert "nothing is left to do" not in caplog.text
    grid, result = run_app("us/hospital", "defended", num_rounds=3)
    said = f"nothing is left to do: {tmp_path / 'defended'} has 3 rounds, num_rounds is 3"
    assert said in caplog.text
    assert grid.asked == []
    assert result.arrays is not None


def test_a_state_of_an_older_version_is_refused(tmp_path):
    run_app("us/hospital", tmp_path)
    like = RunState(torch.zeros(8), None, 0, 0)
    save_state(tmp_path / STATE, load_state(tmp_path / STATE, like))
    with pytest.raises(StateError, match="does not say which run it is of, as files of older"):
        run_app("us/hospital", tmp_path)


@pytest.mark.parametrize("sends", ["models", "updates"])
def test_nodes_that_send_the_other_kind_are_warned_of(caplog, sends):
    def whole(message):
        return reply(message, {k: v * np.float32(1.01) for k, v in model_in(message).items()})

    def less(message):
        return reply(message, {k: v * np.float32(0.01) for k, v in model_in(message).items()})

    right, wrong = (whole, less) if sends == "models" else (less, whole)
    started(dict.fromkeys(range(3), right), sends=sends)
    assert "seem to send" not in caplog.text
    started(dict.fromkeys(range(3), wrong), sends=sends)
    assert "round 1: 3 of 3 clients seem to send" in caplog.text
