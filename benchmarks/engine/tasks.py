"""Tasks to time: a round of local training on made-up data, the same for every engine."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from datadefense.core.examples import Examples
from datadefense.tasks.models.lenet import lenet
from datadefense.tasks.models.lstm import LstmClassifier
from datadefense.tasks.models.vgg9 import vgg9

LEARNING_RATE, MOMENTUM = 0.01, 0.9
WORDS = 20_000


@dataclass(frozen=True, slots=True)
class Task:
    """A round: ``clients`` train on ``samples`` examples each; rounds says how many are timed."""

    about: str
    clients: int
    samples: int
    batch_size: int
    epochs: int
    shape: tuple[int, ...]
    module: Callable[[], nn.Module]
    classes: int = 10
    rounds: int = 8

    def build(self) -> nn.Module:
        """Return the model, the same in every process."""
        torch.manual_seed(0)
        return self.module()

    def examples(self) -> Examples:
        """Return the examples of all clients, one client's after the other's."""
        draw = torch.Generator().manual_seed(1)
        count = self.clients * self.samples
        labels = torch.randint(self.classes, (count,), generator=draw)
        if len(self.shape) == 1:
            return Examples(torch.randint(1, WORDS, (count, *self.shape), generator=draw), labels)
        return Examples(torch.randn((count, *self.shape), generator=draw), labels)

    def of_client(self, examples: Examples, client: int) -> tuple[Tensor, Tensor]:
        """Return the inputs and labels of one client."""
        part = slice(client * self.samples, (client + 1) * self.samples)
        return examples.inputs[part], examples.labels[part]


TASKS: Mapping[str, Task] = {
    "A": Task(
        "LeNet, 30 clients x 100 digits, batch 32, 5 epochs", 30, 100, 32, 5, (1, 28, 28), lenet
    ),
    "B": Task(
        "VGG-9, 10 clients x 250 images, batch 32, 1 epoch",
        10,
        250,
        32,
        1,
        (3, 32, 32),
        vgg9,
        rounds=3,
    ),
    "C": Task(
        "LSTM, 10 clients x 200 tweets of 30 words, batch 20, 1 epoch",
        10,
        200,
        20,
        1,
        (30,),
        lambda: LstmClassifier(WORDS),
        2,
    ),
}
"""The tasks by name: A and B are those of Flower's and pfl's measurements."""


@functools.cache
def examples_once(name: str) -> Examples:
    """Return a task's examples, made once in a process."""
    return TASKS[name].examples()
