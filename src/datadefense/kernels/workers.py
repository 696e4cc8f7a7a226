"""Work on parts of a matrix, shared out between threads that never wait for each other in between.

Left to itself, torch divides every single operation among its threads, and they wait for each other
after each, spinning. On a machine that is busy with something else one of them has no core, and the
wait lasts until it has: a kernel of a thousand short operations then takes a thousand turns of the
scheduler, seconds instead of milliseconds. So here a thread takes a part, does all of it with
operations that are not divided, and takes the next. The bits are those of one thread.
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
"""Passes are bound by memory: more threads add scratch, not speed."""
AHEAD = 4
"""Parts, for each worker, that may be done before an earlier one is."""
Part = tuple[slice, Float[Tensor, "clients width"]]
T = TypeVar("T")


def workers_for(updates: Float[Tensor, "clients dim"], parts: int) -> int:
    """Return how many threads to use: torch's number of them, at most one a part.

    One for a matrix in a file, whose parts share one copy.
    """
    return 1 if is_spilled(updates) else max(1, min(torch.get_num_threads(), parts, MOST_WORKERS))


def share_out(work: Callable[[], None], workers: int) -> None:
    """Run ``work`` in this thread and ``workers - 1`` others, with torch's threads off in each.

    A thread has its own number of threads in torch, and starts with what was last set. One that has
    not had a core by the time that the work is done is not waited for.
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
    """Share the columns up to ``stop`` out, ``width`` at a time: each thread gets an iterator.

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

    What one thread raises, the others do not wait for.
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
