"""The folder of a run has one writer at a time, from before the first read to the last write."""

import multiprocessing
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from tests.runs.quick import quick
from tests.simulation.tiny import tiny_federation

from datadefense import Server
from datadefense.core.round_files import FileError
from datadefense.core.settings import SettingsError
from datadefense.core.storage import locked
from datadefense.defenses import SparseFed
from datadefense.runs import build
from datadefense.runs import run as run_module
from datadefense.runs.config import Experiment, read_toml
from datadefense.runs.files import hold, hold_new, read_rounds
from datadefense.runs.parts import FederationSettings
from datadefense.runs.run import restore, resume, start
from datadefense.simulation.pool import Pool

TINY = Experiment(
    defense=SparseFed(),
    federation=FederationSettings(clients=12, clients_per_round=5, rounds=12),
)
HELD = "another process is at the run in"


def content(folder):
    """All files of a folder, with their bytes and the times of their last change."""
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.iterdir())
    }


def tiny_run(folder):
    return restore(TINY, folder, tiny_federation(), Server())


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "run"
    made.mkdir()
    (made / "rounds.jsonl").touch()
    return made


def try_to_restore(folder, answers):
    """In a process of its own: say what became of the attempt."""
    try:
        tiny_run(folder)
        answers.put("restored")
    except FileError as error:
        answers.put(str(error))


def in_another_process(folder):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    answers = context.SimpleQueue()
    process = context.Process(target=try_to_restore, args=(folder, answers))
    process.start()
    process.join()
    return answers.get()


def test_a_live_run_is_refused_to_others_before_anything_is_touched(folder):
    """Seven rounds with a checkpoint at five: a second `restore` would cut two of them off."""
    whole = folder.with_name("whole")
    shutil.copytree(folder, whole)
    with tiny_run(whole) as run, Pool(run.federation) as pool:
        list(run.rounds(pool))
    with tiny_run(folder) as live, Pool(live.federation) as pool:
        for record in live.rounds(pool):
            if record.round == 7:
                before = content(folder)
                assert in_another_process(folder).startswith(HELD)
                with pytest.raises(FileError, match=HELD):
                    tiny_run(folder)
                assert content(folder) == before
        assert [record.round for record in read_rounds(folder)] == list(range(1, 13))
        assert in_another_process(folder).startswith(HELD), "all rounds are there, no summary yet"
    assert torch.equal(live.progress.params, run.progress.params)
    assert in_another_process(folder) == "restored"


def test_a_closed_run_writes_no_more(folder):
    with tiny_run(folder) as run, Pool(run.federation) as pool:
        rounds = run.rounds(pool)
        next(rounds)
        run.close()
        before = content(folder)
        closed = "is closed here: resume it to go on"
        with pytest.raises(FileError, match=closed):
            next(rounds)
        with pytest.raises(FileError, match=closed):
            next(run.rounds(pool))
        with pytest.raises(FileError, match=closed):
            run.save()
        assert content(folder) == before


def test_a_run_that_nothing_refers_to_lets_go(folder):
    tiny_run(folder)
    hold(folder).close()


@pytest.fixture
def cache(own_cache):
    pytest.importorskip("mlxtend")
    return own_cache


@pytest.mark.usefixtures("cache")
def test_who_begins_second_is_refused_and_the_first_keeps_its_folder(tmp_path, monkeypatch):
    """The second comes while the first still gathers its data: there is no config.toml yet."""
    folder, assemble = tmp_path / "deep" / "run", run_module.assemble

    def slowly(*arguments):
        monkeypatch.setattr(run_module, "assemble", None)
        with pytest.raises(FileError, match=HELD):
            start(quick(seed=2), folder)
        monkeypatch.undo()
        return assemble(*arguments)

    monkeypatch.setattr(run_module, "assemble", slowly)
    with start(quick(seed=1), folder) as run:
        assert read_toml(folder / "config.toml").seed == 1
        for again in (lambda: start(quick(seed=2), folder), lambda: resume(folder)):
            with pytest.raises(FileError, match=HELD):
                again()
    assert read_toml(folder / "config.toml") == run.experiment
    with pytest.raises(FileError, match="holds a run already"):
        start(quick(seed=2), folder)
    assert resume(folder).experiment == run.experiment


@pytest.mark.usefixtures("cache")
def test_a_run_that_could_not_begin_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "warm_start", None)
    kept = tmp_path / "kept"
    kept.mkdir()
    for folder in (tmp_path / "deep" / "down", kept):
        with pytest.raises(SettingsError, match="partition must be iid or dirichlet"):
            start(quick(partition="user"), folder)
    assert not (tmp_path / "deep").exists()
    assert kept.is_dir()


def test_a_folder_is_held_by_one_that_made_it_and_one_that_found_it(tmp_path):
    with hold_new(tmp_path / "run"):
        for take in (hold, hold_new):
            with pytest.raises(FileError, match=HELD):
                take(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_who_waited_for_a_folder_holds_the_one_that_is_there_now(tmp_path):
    """The first removes the folder it holds, as a grid does, and another takes its place."""
    folder, done = tmp_path / "run", threading.Event()
    folder.mkdir()

    def wait_for_it():
        with locked(folder):
            done.wait(30)

    with ThreadPoolExecutor(1) as threads:
        with locked(folder):
            waiting = threads.submit(wait_for_it)
            with pytest.raises(TimeoutError):
                waiting.result(timeout=0.3)
            folder.rmdir()
            folder.mkdir()
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.3)
        with pytest.raises(FileError, match=HELD):
            hold(folder)
        done.set()
