"""A strategy's folder: one writer, a secret state, and a trail of which nothing is lost."""

import json
import os
import stat
import subprocess
import sys

import pytest
from flwr.app import ConfigRecord
from tests.flower.fake_grid import FakeGrid, record, shifted
from tests.flower.test_strategy import HONEST, START, started

from datadefense.core.round_files import FileError
from datadefense.flower import DefendedStrategy
from datadefense.flower.folder import LOCK, STATE, TRAIL


def rounds(folder, name=TRAIL):
    return [json.loads(line)["round"] for line in (folder / name).read_text().splitlines()]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_second_strategy_is_refused_before_it_writes_and_the_first_goes_on(tmp_path):
    refused = []

    def intruder(message):
        before = contents(tmp_path)
        with pytest.raises(FileError, match=f"another strategy is at work in {tmp_path}"):
            started(HONEST, rounds=5, folder=tmp_path)
        refused.append(contents(tmp_path) == before)
        return shifted(0.1)(message)

    started({**HONEST, 6: intruder}, rounds=3, folder=tmp_path)
    assert refused == [True] * 6
    assert rounds(tmp_path) == [1, 2, 3]
    started(HONEST, rounds=5, folder=tmp_path)
    assert rounds(tmp_path) == [1, 2, 3, 4, 5]


HOLDING = """
import fcntl, sys
with open(sys.argv[1]) as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_folder_that_another_process_has_is_refused_until_that_ends(tmp_path):
    (tmp_path / LOCK).touch()
    command = [sys.executable, "-c", HOLDING, str(tmp_path / LOCK)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(FileError, match="end it first, or choose another folder"):
            started(HONEST, folder=tmp_path)
        other.kill()
        other.wait()
    assert list(contents(tmp_path)) == [LOCK]
    started(HONEST, folder=tmp_path)


def test_the_folder_is_free_after_an_error(tmp_path):
    with pytest.raises(ValueError, match="needs a model"):
        started(HONEST, "datadefense", folder=tmp_path / "new")
    started(HONEST, folder=tmp_path / "new")
    assert rounds(tmp_path / "new") == [1]


def test_who_drives_a_strategy_by_hand_holds_the_folder_until_it_is_closed(tmp_path):
    strategy = DefendedStrategy("fedavg", folder=tmp_path, wait_seconds=0)
    list(strategy.configure_train(1, record(START), ConfigRecord(), FakeGrid(HONEST)))
    with pytest.raises(FileError):
        started(HONEST, folder=tmp_path)
    strategy.close()
    started(HONEST, folder=tmp_path)
    grid = FakeGrid(HONEST)
    replies = grid.send_and_receive(
        strategy.configure_train(1, record(START), ConfigRecord(), grid)
    )
    strategy.aggregate_train(1, replies)
    assert rounds(tmp_path) == [1, 2]  # its first round is the second of the folder
    del strategy
    started(HONEST, rounds=3, folder=tmp_path)


def test_a_trail_without_its_state_is_put_aside(tmp_path, caplog):
    for lost in (1, 2):
        started(HONEST, rounds=3, folder=tmp_path)
        whole = (tmp_path / TRAIL).read_bytes()
        (tmp_path / STATE).unlink()
        started(HONEST, rounds=2, folder=tmp_path)
        assert rounds(tmp_path) == [1, 2]
        assert (tmp_path / f"audit.{lost}.jsonl").read_bytes() == whole
        assert f"the trail as it was is now in audit.{lost}.jsonl" in caplog.text
    assert sorted(contents(tmp_path)) == sorted(
        [LOCK, STATE, TRAIL, "audit.1.jsonl", "audit.2.jsonl"]
    )


def test_a_trail_that_knows_more_than_an_old_state_is_put_aside(tmp_path):
    started(HONEST, rounds=1, folder=tmp_path)
    old = (tmp_path / STATE).read_bytes()
    started(HONEST, rounds=4, folder=tmp_path)
    (tmp_path / STATE).write_bytes(old)
    started(HONEST, rounds=2, folder=tmp_path)
    assert rounds(tmp_path) == [1, 2]
    assert rounds(tmp_path, "audit.1.jsonl") == [1, 2, 3, 4]


@pytest.mark.parametrize("more", ['{"round": 3, "clients": []}\n', '{"round": 3, "no', "", "{"])
def test_a_run_that_was_cut_off_puts_nothing_aside(tmp_path, more):
    started(HONEST, rounds=2, folder=tmp_path)
    with (tmp_path / TRAIL).open("a") as trail:
        trail.write(more)
    started(HONEST, rounds=3, folder=tmp_path)
    assert rounds(tmp_path) == [1, 2, 3]
    assert sorted(contents(tmp_path)) == sorted([LOCK, STATE, TRAIL])


@pytest.mark.parametrize(
    "damage",
    [b"[" * 100_000, b"\xff\xfe", b'{"round": "<b>"}', b'{"round": true}', b"[]", b"1e999"],
)
def test_a_damaged_trail_is_put_aside(tmp_path, caplog, damage):
    started(HONEST, rounds=2, folder=tmp_path)
    trail = tmp_path / TRAIL
    first, second = trail.read_bytes().splitlines(keepends=True)
    trail.write_bytes(damaged := first + damage + b"\n" + second)
    started(HONEST, rounds=3, folder=tmp_path)
    assert rounds(tmp_path) == [1, 2, 3]
    assert (tmp_path / "audit.1.jsonl").read_bytes() == damaged
    assert "of which line 2 is damaged" in caplog.text


def test_a_last_line_without_its_end_is_ended(tmp_path):
    started(HONEST, rounds=2, folder=tmp_path)
    trail = tmp_path / TRAIL
    trail.write_text(trail.read_text().rstrip("\n"))
    started(HONEST, rounds=3, folder=tmp_path)
    assert rounds(tmp_path) == [1, 2, 3]


def test_nobody_else_may_read_the_state_with_its_secret_seed(tmp_path):
    before = os.umask(0)
    try:
        started(HONEST, "weak-dp", rounds=2, folder=tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / STATE).stat().st_mode) == 0o600
