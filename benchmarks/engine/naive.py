"""The loop that everybody writes first: one client after the other, a DataLoader, plain SGD."""

from collections.abc import Callable
from time import perf_counter

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.engine.tasks import LEARNING_RATE, MOMENTUM, Task


def train(task: Task, module: nn.Module, data: tuple[Tensor, Tensor]) -> None:
    """Train a module in place on one client's data."""
    loader = DataLoader(TensorDataset(*data), task.batch_size, shuffle=True)
    optimiser = torch.optim.SGD(module.parameters(), LEARNING_RATE, MOMENTUM)
    module.train()
    for _ in range(task.epochs):
        for inputs, labels in loader:
            optimiser.zero_grad()
            loss = cross_entropy(module(inputs), labels)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            loss.item()


def rounds(task: Task) -> Callable[[], float]:
    """Return a function that runs one round with the default threads and returns its seconds."""
    module, examples = task.build(), task.examples()

    def one() -> float:
        start = perf_counter()
        origin = {name: value.clone() for name, value in module.state_dict().items()}
        total = {name: torch.zeros_like(value) for name, value in origin.items()}
        for client in range(task.clients):
            module.load_state_dict(origin)
            train(task, module, task.of_client(examples, client))
            for name, value in module.state_dict().items():
                total[name] += value / task.clients
        module.load_state_dict(total)
        return perf_counter() - start

    return one
