"""A grid of runs: each on one thread, several side by side, each once, resumed where it stopped."""

import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

import torch

from datadefense.data.cache import cache_folder
from datadefense.experiments.experiment import Experiment
from datadefense.experiments.run import resume, start
from datadefense.experiments.run_folder import CONFIG
from datadefense.reproduction.store import Result, append, read_store, result_of
from datadefense.simulation.pool import Pool
from datadefense.storage import locked

Told = Callable[[Result, int, int], None]
"""Called after each run with its result, how many are done and how many were to do."""


def run_one(experiment: Experiment, folder: Path, data: Path | None) -> Result:
    """Carry an experiment out in this process, going on with what ``folder`` holds of it.

    The folder is removed when the run is done: what is worth keeping is in the result.
    """
    torch.set_num_threads(1)
    parent = os.getppid()
    begun = (folder / CONFIG).exists()
    run = resume(folder, data) if begun else start(experiment, folder, data)
    with Pool(run.federation) as pool:
        for _ in run.rounds(pool):
            if os.getppid() != parent:
                raise SystemExit("whoever wanted this run has gone")
        summary = run.finish(pool)
    result = result_of(experiment, summary, run.records, run.poisoned())
    shutil.rmtree(folder)
    return result


def run_if_missing(
    experiment: Experiment, folder: Path, data: Path | None, store: Path, curves: bool
) -> tuple[Result, bool]:
    """Return the result and whether it is new: another process may have stored it meanwhile.

    Who comes second to a run that is under way waits for it.
    """
    with _alone_in(folder):
        known = read_store(store).get(experiment.key())
        if known is not None and _serves(known, curves):
            return known, False
        result = run_one(experiment, folder, data)
        append(store, result)
        return result, True


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Hold the lock of ``folder``, which lies elsewhere: the folder itself comes and goes."""
    locks = folder.parent.with_name("locks")
    locks.mkdir(parents=True, exist_ok=True)
    lock = locks / folder.name
    lock.touch()
    with locked(lock):
        yield


def _serves(result: Result, curves: bool) -> bool:
    """Say whether a stored result will do; the oldest have no curves."""
    return bool(result.curves) or not curves


def run_missing(
    wanted: Iterable[Experiment],
    store: Path,
    data: Path | None = None,
    *,
    jobs: int = 1,
    told: Told | None = None,
    curves: bool = False,
) -> dict[str, Result]:
    """Run what the store does not have, adding a line for each; return all results by key.

    With ``curves``, results that have none are missing too.

    Runs under way are kept in the cache folder, so that a grid that was killed goes on from their
    checkpoints. An experiment that fails ends the grid, after the others under way are stored.
    """
    results = read_store(store)
    known = {key for key, result in results.items() if _serves(result, curves)}
    missing = {one.key(): one for one in wanted if one.key() not in known}
    done = 0

    def keep(result: Result, new: bool) -> None:
        nonlocal done
        done += 1
        results[result.key] = result
        if told is not None and new:
            told(result, done, len(missing))

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max(1, jobs), mp_context=context) as executor:
        waiting = iter(missing.items())
        running: set[Future[tuple[Result, bool]]] = set()
        failed: BaseException | None = None
        while True:
            while failed is None and len(running) < jobs and (item := next(waiting, None)):
                key, one = item
                folder = cache_folder() / "under-way" / key
                running.add(executor.submit(run_if_missing, one, folder, data, store, curves))
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
