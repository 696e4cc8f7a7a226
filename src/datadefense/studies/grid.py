"""A grid of runs: several side by side, each once, resumed where it stopped."""

import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import torch

from datadefense.core.errors import DataDefenseError
from datadefense.core.storage import exclusive_lock
from datadefense.data.cache import cache_folder
from datadefense.runs.config import Experiment
from datadefense.runs.files import CONFIG
from datadefense.runs.run import resume, start
from datadefense.simulation.pool import Pool
from datadefense.studies.store import Result, append, read_store, result_of

Report = Callable[[Result, int, int], None]
"""Called after each run with its result, how many are done and how many were to do."""


class AbandonedError(DataDefenseError):
    """Whoever wanted a run has gone."""


def run_one(experiment: Experiment, folder: Path, data: Path | None, workers: int = 0) -> Result:
    """Carry an experiment out, going on with what ``folder`` holds of it.

    Clients train in this process, or in ``workers`` others; the result is the same. The folder is
    removed when the run is done: what is worth keeping is in the result.
    """
    torch.set_num_threads(1)
    parent = os.getppid()
    begun = (folder / CONFIG).exists()
    run = resume(folder, data) if begun else start(experiment, folder, data)
    with run, Pool(run.federation, workers) as pool:
        for _ in run.rounds(pool):
            if os.getppid() != parent:
                raise AbandonedError(f"whoever wanted the run in {folder} has gone")
        with _floor_of(experiment, folder):
            summary = run.finish(pool)
        result = result_of(experiment, summary, run.records, run.poisoned())
        shutil.rmtree(folder)
    return result


def _floor_of(experiment: Experiment, folder: Path) -> AbstractContextManager[None]:
    """Wait for the run that measures the floor, if it is under way elsewhere.

    Whoever comes first measures it and the others find it in the cache.
    """
    baseline_folder = folder.with_name(experiment.without_attack().key())
    return nullcontext() if baseline_folder == folder else exclusive_lock(_lock(baseline_folder))


def run_if_missing(
    experiment: Experiment,
    folder: Path,
    data: Path | None,
    store: Path,
    *,
    curves: bool,
    workers: int = 0,
) -> tuple[Result, bool]:
    """Return the result and whether it is new: another process may have stored it meanwhile.

    Who comes second to a run that is under way waits for it.
    """
    with exclusive_lock(_lock(folder)):
        known = read_store(store).get(experiment.key())
        if known is not None and _serves(known, curves):
            return known, False
        result = run_one(experiment, folder, data, workers)
        append(store, result)
        return result, True


def _run_in_worker(
    experiment: Experiment,
    folder: Path,
    data: Path | None,
    store: Path,
    *,
    curves: bool,
    workers: int,
) -> tuple[Result, bool]:
    """Run in a process of the executor's, which without a parent would wait for work for ever."""
    try:
        return run_if_missing(experiment, folder, data, store, curves=curves, workers=workers)
    except AbandonedError:
        os._exit(1)


def _lock(folder: Path) -> Path:
    """Return the lock of ``folder``, which lies elsewhere: the folder itself comes and goes."""
    return folder.parent.with_name("locks") / folder.name


def _serves(result: Result, curves: bool) -> bool:
    """Say whether a stored result will do; the oldest have no curves."""
    return bool(result.curves) or not curves


def missing_of(
    wanted: Iterable[Experiment], results: Mapping[str, Result], *, curves: bool = False
) -> dict[str, Experiment]:
    """Return what has no result yet, by key; with ``curves``, those without any are missing too."""
    runs = {experiment.key(): experiment for experiment in wanted}
    return {
        key: experiment
        for key, experiment in runs.items()
        if key not in results or not _serves(results[key], curves)
    }


def run_missing(
    wanted: Iterable[Experiment],
    store: Path,
    data: Path | None = None,
    *,
    jobs: int = 1,
    report: Report | None = None,
    curves: bool = False,
) -> dict[str, Result]:
    """Run what the store does not have, adding a line for each; return all results by key.

    A run takes one thread, but where fewer runs than ``jobs`` are missing, their clients train in
    the processes that are left.

    Runs under way are kept in the cache folder, so that a grid that was killed goes on from their
    checkpoints. An experiment that fails ends the grid, after the others under way are stored.
    """
    results = read_store(store)
    missing = missing_of(wanted, results, curves=curves)
    workers = _workers(jobs, len(missing))
    done = 0

    def keep(result: Result, new: bool) -> None:
        nonlocal done
        done += 1
        results[result.key] = result
        if report is not None and new:
            report(result, done, len(missing))

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max(1, jobs), mp_context=context) as executor:
        waiting = iter(missing.items())
        running: set[Future[tuple[Result, bool]]] = set()
        failed: BaseException | None = None
        while True:
            while failed is None and len(running) < jobs and (item := next(waiting, None)):
                key, experiment = item
                folder = cache_folder() / "under-way" / key
                todo = partial(_run_in_worker, curves=curves, workers=workers)
                running.add(executor.submit(todo, experiment, folder, data, store))
            if not running:
                break
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                failed = failed or future.exception()
                if future.exception() is None:
                    keep(*future.result())
    if failed is not None:
        raise failed
    return results


def _workers(jobs: int, runs: int) -> int:
    """Return how many processes each run may have for its clients; 0 for none but its own."""
    share = jobs // max(1, runs)
    return share if share > 1 else 0
