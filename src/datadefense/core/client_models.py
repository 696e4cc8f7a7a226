"""Each client's model in turn: what is measured of them is shared out to threads.

A model is the global one plus the client's update. Clients are independent, so a thread takes one
client at a time and computes alone: the bits are those of one thread, whatever the number.
"""

from collections.abc import Callable
from threading import Lock
from typing import TypeVar, cast

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.core.predictor import Predictor
from datadefense.core.round import Round
from datadefense.core.server import Server
from datadefense.kernels.spill import is_spilled, release
from datadefense.kernels.workers import share_out

T = TypeVar("T")


def of_each_client(
    server: Server, round: Round, measure: Callable[[Float[Tensor, " dim"]], T]
) -> list[T]:
    """Return ``measure(params)`` of each client's model, in the order of the clients.

    ``params`` is memory that the next model is written into. With a model that is a function of
    somebody's own (no `Predictor`) there is one thread: it may not stand several calls at once.
    """
    found: list[T | None] = [None] * round.num_clients
    rows, lock = iter(range(round.num_clients)), Lock()

    def work() -> None:
        params = torch.empty_like(round.global_params)
        while True:
            with lock:
                row = next(rows, None)
            if row is None:
                return
            torch.add(round.global_params, round.updates[row], out=params)
            release(round.updates[row])
            found[row] = measure(params)

    threads = server.threads or torch.get_num_threads()
    alone = is_spilled(round.updates) or not isinstance(server.predict, Predictor)
    share_out(work, 1 if alone else min(threads, round.num_clients))
    return cast(list[T], found)
