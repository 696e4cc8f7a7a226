"""Nodes that one would rather not have, for show: delete this file from an app of your own."""

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from torch import Tensor, nn

from datadefense.attacks.base import AttackContext
from datadefense.attacks.pgd import PgdReplacement
from datadefense.core.predictor import Layout
from defended_digits import task


def attack(
    model: nn.Module, examples_of_all: int, nodes: int, index: int, seed: int
) -> tuple[dict[str, Tensor], int]:
    """Learn that strange sevens are ones, and scale that so that it survives the average.

    ``examples_of_all`` is a guess of what all nodes of the round hold together.
    """
    trainer, data = task.bench_of(model), task.material(seed).attacker
    start = trainer.layout.flatten(model.state_dict())
    pgd = PgdReplacement(epochs=5, replacement_radius=1.0)
    context = AttackContext(
        index=index,
        start=start,
        previous=None,
        num_examples=examples_of_all,
        attacker=(0, 1),
        training=task.TRAINING,
        augment=None,
        seed=seed,
        first=start,
        clients=nodes,
    )
    update = pgd.update(trainer, data, context)
    return Layout.of_module(model).unflatten(start + update), pgd.num_examples(data)


def garbage(message: Message, index: int) -> Message:
    """Return nonsense, of another kind each round; after the last it begins again."""
    kinds = (not_finite, other_shapes, lying_count, nothing, broken)
    return Message(kinds[(index - 1) % len(kinds)](_arrays(message)), reply_to=message)


def not_finite(arrays: dict[str, np.ndarray]) -> RecordDict:
    """Return a model of NaN."""
    return _content({name: values * np.nan for name, values in arrays.items()}, 900)


def other_shapes(arrays: dict[str, np.ndarray]) -> RecordDict:
    """Return a model whose every tensor is flat."""
    return _content({name: values.ravel() for name, values in arrays.items()}, 900)


def lying_count(arrays: dict[str, np.ndarray]) -> RecordDict:
    """Return a model of fifties, learned from a billion examples."""
    return _content({name: values * 0 + 50 for name, values in arrays.items()}, 10**9)


def nothing(_: dict[str, np.ndarray]) -> RecordDict:
    """Return no model at all."""
    return RecordDict()


def broken(_: dict[str, np.ndarray]) -> RecordDict:
    """Fail."""
    raise RuntimeError("this node is broken")


def _arrays(message: Message) -> dict[str, np.ndarray]:
    return {name: array.numpy() for name, array in message.content["arrays"].items()}


def _content(arrays: dict[str, np.ndarray], count: int) -> RecordDict:
    record = ArrayRecord({name: Array(values) for name, values in arrays.items()})
    return RecordDict({"arrays": record, "metrics": MetricRecord({"num-examples": count})})
