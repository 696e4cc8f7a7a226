"""What a user wants: a task and changes, or a configuration file and changes."""

import pytest

from datadefense.cli.experiment_options import ExperimentOptions
from datadefense.core.settings import SettingsError
from datadefense.runs.config import read_toml, write_toml
from datadefense.runs.configure import configure

pytest.importorskip("mlxtend")
pytest.importorskip("sklearn")


@pytest.fixture
def stored(tmp_path):
    changes = {"attack": "pgd", "defense": "median", "attack.epochs": "3", "seed": "4"}
    experiment = configure("digits-edge", "cpu", changes)
    (tmp_path / "own.toml").write_text(write_toml(experiment))
    return tmp_path / "own.toml", experiment


def test_a_file_is_taken_as_it_is(stored):
    path, experiment = stored
    assert ExperimentOptions(None, None, {}, path).experiment() == experiment


def test_a_file_with_changes(stored):
    path, _ = stored
    changed = ExperimentOptions(
        None, None, {"rounds": "2", "attack.radius": "0.5"}, path
    ).experiment()
    assert (changed.rounds, changed.attack.radius, changed.attack.epochs) == (2, 0.5, 3)
    assert (changed.seed, changed.name_of("defense")) == (4, "median")


def test_a_part_of_a_file_will_do(tmp_path):
    (tmp_path / "short.toml").write_text('[task]\nname = "digits-edge"\n[federation]\nrounds = 2\n')
    chosen = ExperimentOptions(None, None, {}, tmp_path / "short.toml").experiment()
    assert chosen.rounds == 2
    assert chosen.name_of("attack") == "none"


@pytest.mark.parametrize(
    ("task", "scale", "changes", "message"),
    [
        ("digits-edge", None, {}, "give either --task or --config"),
        (None, "paper", {}, "--scale does not go with --config: the file has its own"),
        (None, None, {"attack": "lie"}, "change it there, or leave out --config"),
        (None, None, {"malicious": "0.2"}, "malicious is in the configuration file"),
        (None, None, {"attack.epochs": "x"}, "^attack.epochs must be an integer, got 'x'"),
        (None, None, {"attack.epochs": "0"}, "^attack.epochs must be >= 1, got 0"),
        (None, None, {"attack.z": "1"}, "attack pgd has no setting 'z'; those that have it: lie"),
        (None, None, {"seed": "x"}, "seed must be an integer, got 'x'"),
    ],
)
def test_what_does_not_go_with_a_file(stored, task, scale, changes, message):
    with pytest.raises(SettingsError, match=message):
        ExperimentOptions(task, scale, changes, stored[0]).experiment()


def test_neither_is_too_little():
    with pytest.raises(SettingsError, match="give either --task or --config"):
        ExperimentOptions(None, None, {}).experiment()


def test_a_run_can_be_run_again_from_its_configuration(typed, quick, tmp_path):
    words = ("--rounds", 2, "--workers", 0)
    assert typed("run", "--setup", "digits-edge", *words, *quick, "--out", "a").code == 0
    assert typed("run", "--config", "a/config.toml", "--workers", 0, "--out", "b").code == 0
    rest = ("--seed", 1, "--set", "attack.epochs=2", "--workers", 0, "--out", "c")
    assert typed("run", "--config", "a/config.toml", *rest).code == 0
    files = [tmp_path / name / "checkpoint.safetensors" for name in "abc"]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].read_bytes() != files[2].read_bytes()
    first, changed = (read_toml(tmp_path / name / "config.toml") for name in "ac")
    assert (changed.seed, changed.attack.epochs) == (1, 2)
    assert changed.federation == first.federation


def test_a_file_that_cannot_be_used_is_one_line(typed, stored):
    path, _ = stored
    path.write_text(path.read_text().replace("epochs = 3", 'epochs = "many"'))
    ended = typed("run", "--config", path.name)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: own.toml: attack.epochs must be an integer, got 'many'\n"
    assert "own.tom: no readable configuration" in typed("run", "--config", "own.tom").err
