"""Relabelled: clean examples of a class that may be turned, labelled as what it may become.

A backdoor teaches a model that some inputs of class A are B. A server that fears this has no such
inputs, but it has ordinary ones of class A. Called B they are as absurd to a first model as poison
is, and a model that has learned the backdoor finds them less so.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from datadefense.core.examples import Examples
from datadefense.core.settings import SettingsError, check_int
from datadefense.defense_sets.suggestions.candidates import Candidates


def relabelled(
    clean: Examples,
    sources: Sequence[int] | None,
    targets: Sequence[int],
    count: int,
    draw: torch.Generator,
) -> Candidates:
    """Return ``count`` clean examples, each once, labelled with a target that is not its class.

    Every target gets as many, or one more if they do not come out even. For each target in turn
    the examples are taken in one random order.

    Args:
        clean: examples with their right labels.
        sources: classes that may be turned; None: all.
        targets: what they may be turned into.
        count: how many.
        draw: gives the order.
    """
    check_int("candidates", count, 1)
    if not targets:
        raise SettingsError("relabelled needs at least one class to turn examples into")
    most, scarce = min((_available(clean, sources, target), target) for target in targets)
    if count > most:
        raise SettingsError(
            f"candidates must be <= {most}, the clean examples of {_named(sources)} that are not "
            f"{scarce}, got {count}"
        )
    order = torch.randperm(len(clean), generator=draw)
    if sources is not None:
        order = order[torch.isin(clean.labels[order], torch.tensor(list(sources)))]
    rows: list[Tensor] = []
    labels: list[int] = []
    for place, target in enumerate(targets):
        share = count // len(targets) + (place < count % len(targets))
        picked = order[clean.labels[order] != target][:share]
        order = order[~torch.isin(order, picked)]
        rows.append(picked)
        labels += [target] * share
    chosen = clean.take(torch.cat(rows))
    origins = tuple(
        f"{was} as {now}" for was, now in zip(chosen.labels.tolist(), labels, strict=True)
    )
    return Candidates(Examples(chosen.inputs, torch.tensor(labels)), origins)


def most_relabelled(clean: Examples, sources: Sequence[int] | None, targets: Sequence[int]) -> int:
    """Return the most candidates that `relabelled` makes of these examples."""
    return min((_available(clean, sources, target) for target in targets), default=0)


def _available(clean: Examples, sources: Sequence[int] | None, target: int) -> int:
    """Return how many examples of the sources are not of the target's class."""
    others = clean.labels != target
    if sources is not None:
        others &= torch.isin(clean.labels, torch.tensor(list(sources)))
    return int(others.sum())


def _named(sources: Sequence[int] | None) -> str:
    if sources is None:
        return "all classes"
    return f"class{'es' * (len(sources) != 1)} {', '.join(map(str, sources))}"
