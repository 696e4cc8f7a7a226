"""The ceiling: the same SGD steps in plain processes, with no federation around them.

Every client starts from the same weights, as in a round.
"""

from multiprocessing.connection import Connection

import torch
import torch.multiprocessing as mp
from torch.nn.functional import cross_entropy

from benchmarks.engine.tasks import LEARNING_RATE, MOMENTUM, TASKS
from datadefense.core.compute import is_narrow


def _work(connection: Connection, name: str, clients: range) -> None:
    torch.set_num_threads(1)
    task = TASKS[name]
    module, examples = task.build(), task.examples()
    narrow = is_narrow(module)
    if narrow:
        module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    start = {name: value.clone() for name, value in module.state_dict().items()}
    connection.send("ready")
    while connection.recv():
        for client in clients:
            module.load_state_dict(start)
            optimiser = torch.optim.SGD(module.parameters(), LEARNING_RATE, MOMENTUM, fused=True)
            inputs, labels = task.of_client(examples, client)
            for _ in range(task.epochs):
                for index in torch.split(torch.randperm(task.samples), task.batch_size):
                    batch = inputs[index]
                    if narrow:
                        batch = batch.contiguous(memory_format=torch.channels_last)
                    optimiser.zero_grad(set_to_none=True)
                    cross_entropy(module(batch), labels[index]).backward()  # type: ignore[no-untyped-call]
                    optimiser.step()
        connection.send("done")


class Ceiling:
    """Two processes, one thread each, that train half of the clients each when told to."""

    def __init__(self, name: str, processes: int = 2) -> None:
        context = mp.get_context("forkserver")
        context.set_forkserver_preload([__name__])
        self._connections: list[Connection] = []
        for rank in range(processes):
            ours, theirs = context.Pipe()
            clients = range(rank, TASKS[name].clients, processes)
            context.Process(target=_work, args=(theirs, name, clients), daemon=True).start()
            theirs.close()
            self._connections.append(ours)
        for connection in self._connections:
            connection.recv()

    def round(self) -> None:
        """Train every client once."""
        for connection in self._connections:
            connection.send(True)
        for connection in self._connections:
            connection.recv()

    def close(self) -> None:
        """End the processes."""
        for connection in self._connections:
            connection.send(False)
            connection.close()
