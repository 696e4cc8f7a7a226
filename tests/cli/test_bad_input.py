"""A user's mistake, a broken file or a full disk: one line, no traceback, nothing lost."""

import errno
import os
import shutil

import pytest
import torch
from safetensors.torch import load_file
from tests.data.folders import digits, write_ardis, write_mnist, write_tweets

from datadefense.core.examples import Examples
from datadefense.data.parquet import write_images, write_texts

pytest.importorskip("mlxtend")


def assert_one_line(ended, message):
    assert ended.code == 2
    assert message in ended.err
    assert ended.err.startswith("error: ")
    assert len(ended.err.strip().splitlines()) == 1
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "clients_per_round=60"], "must be in 1..clients, got 60 of 50 clients"),
        (["--set", "alpha=0"], "alpha must be > 0, got 0"),
        (["--set", "alpha=-0.5"], "alpha must be > 0, got -0.5"),
        (["--attack", "pgd", "--set", "radius=-1"], "attack.radius must be >= 0, got -1"),
        (["--set", "replacement_radius=-2"], "attack.replacement_radius must be >= 0, got -2"),
        (["--set", "schedule=fixed-pool", "--set", "share=0"], "schedule.share must be > 0, got 0"),
        (["--set", "schedule=fixed-pool", "--set", "share=1.1"], "must be <= 1, got 1.1"),
        (["--set", "pool=9999"], "there is no setting 'pool', did you mean 'malicious'?"),
        (["--set", "model=my:Net"], "'model': the task has its model; --task module:name is one"),
        (
            ["--set", "trigger_size=3"],
            "task digits-edge has no setting 'trigger_size'; those that have it: cifar10-trigger, "
            "cifar100-trigger",
        ),
        (
            ["--set", "schedule.share=0.3"],
            "schedule fixed-frequency has no setting 'share'; those that have it: fixed-pool",
        ),
        (["--set", "attack_epochs=3"], "'attack_epochs', did you mean 'attack.epochs'?"),
        (["--set", "attack.epochs=x"], "error: attack.epochs must be an integer, got 'x'"),
        (["--set", "epochs=3"], "say warm.epochs or federation.epochs or attack.epochs"),
        (["--set", "task=x"], "there is no setting 'task': say --task"),
        (["--attack", "none", "--set", "attack.epochs=3"], "does not apply: nobody attacks"),
        (["--attack", "none", "--set", "period=3"], "period does not apply: nobody attacks"),
        (
            ["--set", "rounds=3", "--set", "federation.rounds=4"],
            "rounds and federation.rounds are the same setting: give one of them",
        ),
        (["--rounds", "3", "--set", "rounds=4"], "rounds is given twice"),
        (["--malicious", "0.2", "--set", "share=0.1"], "malicious is the schedule's share"),
        (["--config", "some.toml"], "give either --task or --config"),
        (["--workers", "-1"], "workers must be >= 0, got -1"),
        (["--device", "warp"], "device must be one that torch has here, got 'warp'"),
        (["--set", "clints=5"], "there is no setting 'clints', did you mean 'federation.clients'?"),
        (["--set", "defense.norm=5"], "has no setting 'norm'"),
        (["--set", "clients"], "expected key=value, got 'clients'"),
        (["--set", "clients=few"], "federation.clients must be an integer, got 'few'"),
        (["--set", "partition=user"], "there are no users in this copy of the data of digits-edge"),
        (["--scale", "gpu"], "scale must be one of cpu, paper, got 'gpu'"),
        (["--out", "taken/run"], "taken"),
    ],
)
def test_settings_that_cannot_be(typed, tmp_path, options, message):
    (tmp_path / "taken").write_text("a file")
    ended = typed("run", "--task", "digits-edge", *options)
    assert_one_line(ended, message)
    assert not (tmp_path / "runs").exists()


def test_resume_checks_its_options_first(typed, tmp_path):
    assert_one_line(typed("resume", "nowhere"), "nowhere holds no run")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.toml").write_text("rounds = 3\nclints = 5\n")
    assert_one_line(typed("resume", "run"), "run/config.toml: there is no part 'rounds'")
    assert_one_line(typed("resume", "run", "--workers", "-1"), "workers must be >= 0, got -1")


@pytest.fixture
def offline(tmp_path, monkeypatch):
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))


def picture_files(folder):
    """CIFAR-10 as parquet, with both parts whole."""
    pytest.importorskip("pyarrow")
    pixels = torch.randint(256, (20, 3, 32, 32), dtype=torch.uint8)
    for split in ("train", "test"):
        path = folder / "cifar10" / f"{split}.parquet"
        write_images(path, Examples(pixels, torch.arange(20) % 10), "img", "label")
    return folder / "cifar10" / "train.parquet"


def test_a_truncated_parquet_file(typed, tmp_path):
    path = picture_files(tmp_path / "data")
    content = path.read_bytes()
    for cut in (0, 3, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:cut])
        ended = typed("run", "--task", "cifar10-trigger", "--data", "data")
        assert_one_line(ended, "train.parquet is not a readable parquet file")
    middle = len(content) // 3
    path.write_bytes(content[:middle] + b"\0" * 200 + content[middle + 200 :])
    assert_one_line(typed("run", "--task", "cifar10-trigger", "--data", "data"), "train.parquet")


@pytest.mark.parametrize(
    ("task", "data", "message"),
    [
        ("cifar10-trigger", "nowhere", "nowhere is not a folder"),
        ("cifar10-trigger", "file", "file is not a folder"),
        ("cifar10-southwest", "wrong", "looked for cifar10/train.parquet"),
        ("emnist-ardis", "wrong", "looked for emnist_digits/train.parquet"),
        ("sentiment-yl", "wrong", "looked for sentiment140/train.parquet"),
    ],
)
@pytest.mark.usefixtures("offline")
def test_data_that_is_not_there(typed, tmp_path, task, data, message):
    (tmp_path / "file").write_text("a file")
    (tmp_path / "wrong" / "holidays").mkdir(parents=True)
    assert_one_line(typed("run", "--task", task, "--data", data), message)


def test_ardis_that_is_not_there_or_cut(typed, tmp_path):
    write_mnist(tmp_path, 20, 20)
    command = ("run", "--task", "emnist-ardis", "--set", "dataset=mnist", "--data", ".")
    assert_one_line(typed(*command), "ardis/ARDIS_train_2828.csv (and 1 more)")
    write_ardis(tmp_path, 20, 20)
    path = tmp_path / "ardis" / "ARDIS_train_2828.csv"
    path.write_text(path.read_text()[:-2000])
    assert_one_line(typed(*command), "ARDIS_train_2828.csv")
    path.unlink()
    assert_one_line(typed(*command), "is incomplete: ARDIS_train_2828.csv is missing")


def test_tweets_that_nobody_signed(typed, tmp_path):
    write_tweets(tmp_path, 800, 40, named=False)
    settings = ("partition=user", "attack_poison=5", "server.poison=5")
    ended = typed(
        "run",
        "--task",
        "sentiment-yl",
        "--data",
        ".",
        *(word for pair in settings for word in ("--set", pair)),
    )
    assert_one_line(ended, "there are no users in this copy of the data of sentiment-yl")


def params(folder):
    """The tensors of a run's checkpoint; copied, for a file that is mapped must not be cut."""
    tensors = load_file(folder / "checkpoint.safetensors")
    return {name: tensor.clone() for name, tensor in tensors.items()}


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[key], two[key]) for key in one)


def run(typed, quick, out):
    return typed(
        *("run", "--task", "digits-edge", "--rounds", 3, "--workers", 0, "--out", out, *quick)
    )


def test_a_corrupt_checkpoint_falls_back_and_says_so(typed, quick, tmp_path, datadefense_log):
    assert run(typed, quick, "a").code == 0
    whole = params(tmp_path / "a")
    path = tmp_path / "a" / "checkpoint.safetensors"
    for content in (b"", path.read_bytes()[:-100], b"\xff" * 5000):
        path.write_bytes(content)
        datadefense_log.clear()
        ended = typed("resume", "a", "--workers", 0)
        assert ended.code == 0
        assert "round 3/3" in ended.out
        assert "round 2/3" not in ended.out
        assert "trying the checkpoint before it" in datadefense_log.text
        assert same(params(tmp_path / "a"), whole)


def test_a_full_disk_is_one_line_and_the_run_goes_on_later(typed, quick, tmp_path, monkeypatch):
    """Room for so many files in the folder of the run; then none; then enough again."""
    assert run(typed, quick, "whole").code == 0
    for room in (0, 1, 2, 4, 7):
        fill_the_disk(typed, quick, tmp_path, monkeypatch, room)
        shutil.rmtree(tmp_path / "full")


def fill_the_disk(typed, quick, tmp_path, monkeypatch, room):
    sync, seen = os.fsync, []

    def full(file):
        seen.append(file)
        if len(seen) > room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(file)

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        ended = run(typed, quick, "full")
    if room == 0:
        assert_one_line(ended, "No space left on device: 'full/config.toml'")
        assert run(typed, quick, "full").code == 0
    else:
        assert_one_line(ended, "cannot write to full: No space left on device; what is there is")
        assert ended.err.endswith("go on with: datadefense resume full\n")
        assert typed("resume", "full", "--workers", 0).code == 0
    assert same(params(tmp_path / "full"), params(tmp_path / "whole"))
    stored = (tmp_path / "full" / "rounds.jsonl").read_text().splitlines()
    assert len(stored) == 3
    assert (tmp_path / "full" / "summary.json").is_file()


def test_labels_beyond_the_task(typed, tmp_path):
    write_mnist(tmp_path, 20, 20)
    write_ardis(tmp_path, 20, 20)
    pixels, labels = digits(20, "odd")
    header = bytes([0, 0, 8, 1]) + (20).to_bytes(4, "big")
    path = tmp_path / "mnist" / "train-labels-idx1-ubyte"
    path.write_bytes(header + bytes(labels.astype("uint8") + 5))
    ended = typed("run", "--task", "emnist-ardis", "--set", "dataset=mnist", "--data", ".")
    assert_one_line(ended, "labels of mnist are 0 to 9, found 5 to 14")
    assert len(pixels) == 20


def test_what_a_data_set_brings_does_not_command_the_terminal(typed, tmp_path):
    """Columns of a parquet file are named in the error: here with an escape, and 1 MB long."""
    for split in ("train", "test"):
        path = tmp_path / "yorgos_lanthimos" / f"{split}.parquet"
        write_texts(path, {"\x1b]0;owned\x07\n" + "x" * 1_000_000: ["a"], "label": [1]})
    shown = typed("data", "check", "yorgos-lanthimos", "--data", ".")
    assert shown.code == 1
    assert "has no column 'text'" in " ".join(shown.out.split())
    refused = typed("run", "--task", "sentiment-yl", "--data", ".")
    imported = typed("defense-set", "show", "yorgos_lanthimos")
    for ended in (shown, refused, imported):
        assert "\x1b" not in ended.out + ended.err
        assert "\x07" not in ended.out + ended.err
        assert len(ended.out + ended.err) < 20_000
