"""What is wrong with a defense set in a task, and what is doubtful."""

from collections.abc import Iterator

import torch
from torch import Tensor

from datadefense.core.content import content_keys, rows_seen_in
from datadefense.defense_sets.folder import DefenseSetSource
from datadefense.tasks.base import TaskData

FEWEST = 5
"""Known clean examples below which the detector has little to hold on to."""


def problems(
    source: DefenseSetSource, inputs: Tensor, data: TaskData, task: str
) -> tuple[list[str], list[str]]:
    """Return errors and warnings, a line each.

    Args:
        source: the set.
        inputs: its inputs as the model takes them.
        data: what the task judges models by.
        task: the task's name.
    """
    stored = data.as_stored(inputs)
    errors, warnings = _doubles(source, stored)
    errors += odd_labels(source, classes(data))
    for name, others in held_out(data).items():
        errors += _shared(source, stored, others, f"in the {name} of {task}")
    poison = data.as_stored(data.attacker.poison.inputs)
    warnings += _shared(source, stored, poison, "the attacker's own poison")
    return errors, [*warnings, *_doubts(source)]


def held_out(data: TaskData) -> dict[str, Tensor]:
    """Return what models are judged by, which no defense set may hold."""
    judged = {"test": data.test, "backdoor test": data.backdoor_test}
    return {name: data.as_stored(examples.inputs) for name, examples in judged.items()}


def classes(data: TaskData) -> int:
    """Return how many logits the model has."""
    training = data.module.training
    with torch.no_grad():
        count = int(data.module.eval()(data.test.inputs[:1]).shape[1])
    data.module.train(training)
    return count


def odd_labels(source: DefenseSetSource, classes: int) -> Iterator[str]:
    """Yield labels that the model has no output for."""
    for example_id, label in zip(source.ids, source.labels.tolist(), strict=True):
        if not 0 <= label < classes:
            yield f"the label of {example_id!r} must be in 0..{classes - 1}, got {label}"


def _shared(source: DefenseSetSource, stored: Tensor, others: Tensor, where: str) -> Iterator[str]:
    """Yield how many examples are among others."""
    if seen := rows_seen_in(stored, others).tolist():
        first = source.ids[seen[0]]
        yield f"{len(seen)} of {len(source)} examples are also {where}, the first is {first!r}"


def _doubles(source: DefenseSetSource, stored: Tensor) -> tuple[list[str], list[str]]:
    """Return examples that are there twice, and inputs that are there under two labels."""
    first: dict[bytes, int] = {}
    same: list[str] = []
    contradictory: list[str] = []
    for row, key in enumerate(content_keys(stored)):
        other = first.setdefault(key, row)
        if other != row:
            pair = f"{source.ids[other]!r} and {source.ids[row]!r} are the same"
            if source.labels[other] == source.labels[row]:
                same.append(f"{pair} example")
            else:
                contradictory.append(f"{pair} input under two labels")
    return same, contradictory


def _doubts(source: DefenseSetSource) -> Iterator[str]:
    known = int(source.known_clean.sum())
    if known < FEWEST:
        yield f"{known} examples are known clean, fewer than {FEWEST}: the detector may fail"
    labels = set(source.labels[source.known_clean].tolist())
    if known > 1 and len(labels) == 1:
        yield f"all known clean examples have the label {labels.pop()}: mark some of other classes"
    if known == len(source):
        yield "every example is known clean: none can be found to be poisoned"
