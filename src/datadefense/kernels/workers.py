"""Split work on a matrix into parts for threads that do not wait for each other after each step.

By default torch divides every operation among its threads, and they wait for each other after each
one. On a busy machine a thread may have no core, and all wait until it gets one: a kernel of a
thousand short operations then takes seconds instead of milliseconds. So here a thread takes a part
of the matrix, does all operations on it alone, and takes the next part. The result has the same
bits as with one thread.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Condition, Lock
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.kernels.passes import column_parts
from datadefense.kernels.spill import is_spilled

MOST_WORKERS = 8
"""The speed of memory is the limit: more threads need more buffers and are not faster."""
AHEAD = 4
"""Parts per worker that may be finished before an earlier part is."""
Part = tuple[slice, Float[Tensor, "clients width"]]
T = TypeVar("T")


def workers_for(updates: Float[Tensor, "clients dim"], parts: int) -> int:
    """Return how many threads to use: as many as torch, at most one per part.

    One for a matrix in a file, because its parts share one buffer.
    """
    return 1 if is_spilled(updates) else max(1, min(torch.get_num_threads(), parts, MOST_WORKERS))


def share_out(work: Callable[[], None], workers: int) -> None:
    """Run ``work`` in this thread and ``workers - 1`` others, with torch's threads off in each.

    Torch's number of threads is set per thread; a new thread starts with the last value set. A
    thread that has not started by the time the work is done is not waited for.
    """
    if workers == 1:
        work()
        return
    grad, inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()

    def as_here() -> None:
        with torch.inference_mode(inference), torch.set_grad_enabled(grad):
            work()

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    pool = ThreadPoolExecutor(workers - 1)
    done = False
    try:
        others = [pool.submit(as_here) for _ in range(workers - 1)]
        work()
        for other in others:
            if not other.cancel():
                other.result()
        done = True
    finally:
        pool.shutdown(wait=not done, cancel_futures=True)
        torch.set_num_threads(before)


def for_each_part(
    updates: Float[Tensor, "clients dim"],
    stop: int,
    width: int,
    work: Callable[[Iterator[Part]], None],
) -> None:
    """Split the columns up to ``stop`` into parts of ``width``; each thread gets an iterator.

    A part belongs to the thread that took it until it takes the next.
    """
    parts, lock = column_parts(updates, stop, width), Lock()

    def taken() -> Iterator[Part]:
        while True:
            with lock:
                part = next(parts, None)
            if part is None:
                return
            yield part

    share_out(lambda: work(taken()), workers_for(updates, -(-stop // width)))


def sum_over_parts(
    total: Tensor,
    updates: Float[Tensor, "clients dim"],
    stop: int,
    width: int,
    measure: Callable[[slice, Float[Tensor, "clients width"]], Tensor],
) -> None:
    """Add ``measure(part, columns)`` of each part to ``total``, in the order of the columns.

    If one thread raises, the others stop waiting.
    """
    due, failed, waiting = 0, False, dict[int, Tensor]()
    turn = Condition()
    ahead = AHEAD * workers_for(updates, MOST_WORKERS)

    def put(number: int, found: Tensor) -> None:
        nonlocal due
        with turn:
            turn.wait_for(lambda: failed or number < due + ahead)
            waiting[number] = found
            while due in waiting:
                total.add_(waiting.pop(due))
                due += 1
            turn.notify_all()

    def work(parts: Iterator[Part]) -> None:
        nonlocal failed
        try:
            for part, columns in parts:
                put(part.start // width, measure(part, columns))
        except BaseException:
            with turn:
                failed = True
                turn.notify_all()
            raise

    for_each_part(updates, stop, width, work)
