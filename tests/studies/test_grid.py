"""Grids of real runs: each once, whoever runs it and however often it was stopped."""

import dataclasses
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.runs.quick import quick

from datadefense.core.settings import SettingsError
from datadefense.core.storage import exclusive_lock
from datadefense.runs.baseline import Floor, cached_floor, write_floor
from datadefense.runs.run import start
from datadefense.simulation.pool import Pool
from datadefense.studies import grid
from datadefense.studies.grid import run_missing, run_one
from datadefense.studies.store import append, read_store

pytest.importorskip("mlxtend")
pytest.importorskip("sklearn")
SMALL_SET = {"server.clean": 20, "server.known_clean": 5, "server.poison": 5}
RUNS = [quick(attack="none"), quick(defense="datadefense", **SMALL_SET)]
BAD = quick(partition="user")


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """A cache of this file's own; processes that are started find it in their environment."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATADEFENSE_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A store that two processes have filled, and what was told meanwhile."""
    store, told = tmp_path_factory.mktemp("stored") / "runs.jsonl", []
    run_missing([*RUNS, RUNS[0]], store, jobs=2, report=lambda *words: told.append(words))
    return store, told


def facts(result):
    """All of a result but times and memory, as it is stored."""
    values = json.loads(json.dumps(dataclasses.asdict(result)))
    kept = {k: v for k, v in values["summary"].items() if not k.startswith(("seconds", "peak_mem"))}
    return values | {"summary": kept}


def stop_after_a_round(experiment, folder):
    run = start(experiment, folder)
    with Pool(run.federation) as pool:
        next(run.rounds(pool))


def test_each_run_is_stored_once_and_told_once(stored):
    store, told = stored
    assert [(done, total) for _, done, total in told] == [(1, 2), (2, 2)]
    assert {result.key for result, _, _ in told} == {run.key() for run in RUNS}
    assert len(store.read_text().splitlines()) == 2


def test_what_is_stored_is_not_run_again(stored):
    store, _ = stored
    before = store.read_bytes()
    results = run_missing(RUNS, store, report=lambda *words: pytest.fail("something was run"))
    assert results == read_store(store)
    assert store.read_bytes() == before


def test_nothing_is_left_of_a_finished_run(stored, cache):
    assert stored[0].exists()
    assert list((cache / "under-way").iterdir()) == []


def test_side_by_side_or_one_after_the_other_is_the_same(stored, tmp_path):
    alone = run_missing(RUNS, tmp_path / "runs.jsonl", jobs=1)
    assert list(alone) == [run.key() for run in RUNS]
    both = read_store(stored[0])
    assert [facts(alone[key]) for key in alone] == [facts(both[key]) for key in alone]


def test_processes_that_are_left_train_clients_and_change_nothing(stored, tmp_path, monkeypatch):
    asked = []

    def watched(federation, workers):
        asked.append(workers)
        return Pool(federation, workers)

    monkeypatch.setattr(grid, "Pool", watched)
    run = RUNS[1]
    assert facts(run_one(run, tmp_path / "run", None, 2)) == facts(read_store(stored[0])[run.key()])
    assert asked == [2]


@pytest.mark.parametrize(
    ("jobs", "runs", "workers"), [(1, 1, 0), (2, 3, 0), (2, 2, 0), (2, 1, 2), (8, 3, 2), (4, 0, 4)]
)
def test_jobs_are_shared_out_among_the_runs(jobs, runs, workers):
    assert grid._workers(jobs, runs) == workers


def test_a_run_waits_for_the_floor_that_another_measures(cache):
    """While somebody has the calm run under way, nobody else measures the floor."""
    run = quick(seed=3)
    calm = cache / "under-way" / run.without_attack().key()
    folder = cache / "under-way" / run.key()
    with ThreadPoolExecutor(1) as threads:
        with exclusive_lock(grid._lock(calm)):
            second = threads.submit(run_one, run, folder, None)
            path = folder / "rounds.jsonl"
            while not path.exists() or path.read_text().count("\n") < run.rounds:
                assert not second.done()
                time.sleep(0.05)
            with pytest.raises(TimeoutError):
                second.result(timeout=0.5)
            write_floor(cached_floor(run), Floor(12.5, 80.0), run)
        assert second.result(timeout=30).summary.asr_floor_percent == 12.5


def test_a_run_that_was_left_is_gone_on_with(stored, tmp_path, monkeypatch):
    run = RUNS[1]
    folder = tmp_path / "run"
    stop_after_a_round(run, folder)
    monkeypatch.setattr(grid, "start", None)
    assert facts(run_one(run, folder, None)) == facts(read_store(stored[0])[run.key()])
    assert not folder.exists()


def test_runs_under_way_are_found_in_the_cache(tmp_path, cache):
    """The stored first round has a figure that no run would have: it must be in the curve."""
    run = quick(seed=1)
    folder = cache / "under-way" / run.key()
    stop_after_a_round(run, folder)
    (line,) = (folder / "rounds.jsonl").read_text().splitlines()
    odd = json.loads(line)
    odd["scores"]["ma_percent"] = -5.0
    (folder / "rounds.jsonl").write_text(json.dumps(odd) + "\n")
    (result,) = run_missing([run], tmp_path / "runs.jsonl").values()
    assert result.curves["ma_percent"][0] == (1, -5.0)
    assert [index for index, _ in result.curves["ma_percent"]] == [1, 2]


def test_who_comes_second_to_a_run_waits_and_takes_its_result(stored, tmp_path, cache, monkeypatch):
    run, store = RUNS[0], tmp_path / "runs.jsonl"
    folder = cache / "under-way" / run.key()
    monkeypatch.setattr(grid, "run_one", None)
    with ThreadPoolExecutor(1) as threads:
        with exclusive_lock(grid._lock(folder)):
            second = threads.submit(grid.run_if_missing, run, folder, None, store, curves=False)
            with pytest.raises(TimeoutError):
                second.result(timeout=0.2)
            append(store, read_store(stored[0])[run.key()])
        result, new = second.result(timeout=30)
    assert result.key == run.key()
    assert not new
    assert len(store.read_text().splitlines()) == 1


def test_results_without_curves_are_run_again_where_curves_are_shown(stored, tmp_path):
    run, store = RUNS[0], tmp_path / "runs.jsonl"
    bare = dataclasses.replace(read_store(stored[0])[run.key()], curves={})
    append(store, bare)
    assert run_missing([run], store)[run.key()] == bare
    again = run_missing([run], store, curves=True)
    assert facts(again[run.key()]) == facts(read_store(stored[0])[run.key()])
    assert read_store(store)[run.key()].curves


def children_of(pid):
    """Processes whose parent is ``pid``."""
    stats = {path.parent.name: path for path in Path("/proc").glob("[0-9]*/stat")}
    return [int(child) for child, path in stats.items() if parent_of(path) == pid]


def parent_of(stat):
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def is_there(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")
def test_nothing_goes_on_after_a_grid_that_was_killed(tmp_path, cache):
    """Nor waits for ever for work, as a process of an executor without a parent would."""
    script = tmp_path / "grid.py"
    script.write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "from tests.runs.quick import quick\n"
        "from datadefense.studies.grid import run_missing\n"
        "if __name__ == '__main__':\n"
        "    run_missing([quick(rounds=10_000, seed=9)], Path(sys.argv[1]))\n"
    )
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": str(root)}
    command = [sys.executable, str(script), str(tmp_path / "runs.jsonl")]
    lines = cache / "under-way" / quick(rounds=10_000, seed=9).key() / "rounds.jsonl"
    with subprocess.Popen(command, env=environment) as killed:
        wait_until(lambda: lines.exists() and lines.stat().st_size > 0)
        workers = children_of(killed.pid)
        killed.kill()
    assert workers
    wait_until(lambda: not any(map(is_there, workers)))
    assert not (tmp_path / "runs.jsonl").exists()


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_one_that_fails_lets_the_others_be_stored(tmp_path):
    store, run = tmp_path / "runs.jsonl", quick(seed=2)
    with pytest.raises(SettingsError, match="partition must be iid or dirichlet"):
        run_missing([BAD, run], store, jobs=2)
    assert list(read_store(store)) == [run.key()]


def test_one_that_fails_ends_the_grid(tmp_path):
    with pytest.raises(SettingsError, match="partition must be iid or dirichlet"):
        run_missing([BAD, RUNS[0]], tmp_path / "runs.jsonl", jobs=1)
    assert not (tmp_path / "runs.jsonl").exists()
