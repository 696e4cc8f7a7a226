"""Workers: persistent processes, one thread each, that do the jobs of a round.

Whichever worker does a job, and in whatever order, the bits are the same. A worker that dies is
replaced and its job done again; ``workers=0`` does everything in the calling process.
"""

import logging
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType

import torch
import torch.multiprocessing as mp

from datadefense.core.errors import DataDefenseError
from datadefense.core.local_training import Trainer
from datadefense.core.settings import check_int
from datadefense.kernels.memory import peak_memory_mb
from datadefense.simulation.federation import Federation
from datadefense.simulation.jobs import Job, JobResult, SharedBuffers, do_job

logger = logging.getLogger(__name__)
MOST_DEATHS = 3
"""After so many workers that died over one job, the job is to blame."""


class WorkerError(DataDefenseError, ChildProcessError):
    """A job that raised in a worker, or that kills every worker that tries it."""


def _work(
    connection: Connection, federation: Federation, board: SharedBuffers, device: str
) -> None:
    """Do jobs until the other end of the pipe is closed, whenever that is."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    trainer = federation.trainer(device)
    with suppress(EOFError, OSError):
        connection.send(("ready", None))
        while True:
            job: Job = connection.recv()
            connection.send(_outcome(job, federation, board, trainer))


def _outcome(
    job: Job, federation: Federation, board: SharedBuffers, trainer: Trainer
) -> tuple[str, JobResult | str]:
    """Return what is said of a job: its answer, or why it failed."""
    try:
        return "done", do_job(job, federation, board, trainer)
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"


@dataclass(slots=True, eq=False)
class _Worker:
    process: BaseProcess
    connection: Connection
    job: int | None = None
    ready: bool = False


@dataclass(slots=True, eq=False)
class Pool:
    """Workers for one federation; use as a context manager."""

    federation: Federation
    workers: int = 0
    device: str = "cpu"
    board: SharedBuffers = field(init=False)
    _processes: list[_Worker] = field(init=False, default_factory=list)
    _trainer: Trainer | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        check_int("workers", self.workers, 0)
        self.board = SharedBuffers.of(self.federation)
        self._processes = [self._start_worker() for _ in range(self.workers)]

    def __enter__(self) -> "Pool":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(at_once=kind is not None)

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        """Do all jobs, the first in the list first, and return their answers in its order."""
        if self.workers == 0:
            return self._run_here(jobs)
        answers: list[JobResult | None] = [None] * len(jobs)
        deaths = [0] * len(jobs)
        waiting = list(reversed(range(len(jobs))))
        while waiting or any(worker.job is not None for worker in self._processes):
            for worker in self._processes:
                if worker.ready and worker.job is None and waiting:
                    worker.job = waiting.pop()
                    self._send(worker, jobs[worker.job])
            for connection in wait([worker.connection for worker in self._processes]):
                worker = next(w for w in self._processes if w.connection is connection)
                try:
                    kind, answer = worker.connection.recv()
                except (EOFError, OSError):
                    self._replace(worker, waiting, deaths)
                    continue
                if kind == "ready":
                    worker.ready = True
                elif worker.job is not None:
                    if kind == "failed":
                        raise WorkerError(f"a client's job failed: {answer}")
                    answers[worker.job], worker.job = answer, None
        return [answer for answer in answers if answer is not None]

    def close(self, *, at_once: bool = False) -> None:
        """End the workers; ``at_once``, in the middle of their jobs."""
        for worker in self._processes:
            worker.connection.close()
            if at_once:
                worker.process.terminate()
        for worker in self._processes:
            worker.process.join(timeout=5)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self._processes = []

    def idle_cores(self) -> int:
        """Return as many as there are workers, which wait then; 1 without any."""
        return max(1, self.workers)

    def peak_memory_mb(self) -> float | None:
        """Return the sum of the peaks of resident memory of all processes; None if unknown."""
        ids = [os.getpid(), *(worker.process.pid for worker in self._processes)]
        peaks = [peak_memory_mb(pid) for pid in ids if pid is not None]
        known = [peak for peak in peaks if peak is not None]
        return sum(known) if len(known) == len(peaks) else None

    def _run_here(self, jobs: Sequence[Job]) -> list[JobResult]:
        if self._trainer is None:
            self._trainer = self.federation.trainer(self.device)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with torch.random.fork_rng(devices=[]):
                return [do_job(job, self.federation, self.board, self._trainer) for job in jobs]
        finally:
            torch.set_num_threads(threads)

    def _start_worker(self) -> _Worker:
        context = mp.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        ours, theirs = context.Pipe()
        wordless = replace(self.federation, vocabulary=None)  # workers read tokens, not words
        process = context.Process(
            target=_work, args=(theirs, wordless, self.board, self.device), daemon=True
        )
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def _send(self, worker: _Worker, job: Job) -> None:
        try:
            worker.connection.send(job)
        except OSError:
            logger.debug(
                "worker %s is gone; noticed when its answer is awaited", worker.process.pid
            )

    def _replace(self, worker: _Worker, waiting: list[int], deaths: list[int]) -> None:
        worker.process.join(timeout=5)
        code = worker.process.exitcode
        if worker.job is not None:
            deaths[worker.job] += 1
            if deaths[worker.job] >= MOST_DEATHS:
                raise WorkerError(
                    f"{MOST_DEATHS} workers died over the same job (exit code {code})"
                )
            waiting.append(worker.job)
        elif not worker.ready:
            raise WorkerError(f"a worker could not start (exit code {code})")
        logger.warning("a worker died (exit code %s); its job is done again", code)
        worker.connection.close()
        self._processes[self._processes.index(worker)] = self._start_worker()
