"""Suggested poison: for a server that has seen none, examples made of its own clean ones.

They are made of clean examples that the server has beyond its defense set: those of the warm start,
which is its own model. With the image and text tasks these are the whole training part, so that
honest clients have most of them too, with their right labels.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from datadefense.core.content import content_keys
from datadefense.core.examples import Examples
from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError
from datadefense.defense_sets.suggestions.candidates import Candidates
from datadefense.defense_sets.suggestions.relabelled import relabelled
from datadefense.defense_sets.suggestions.triggers import triggers
from datadefense.tasks.base import Aim, TaskData

Suggest = Callable[
    [Examples, Sequence[int] | None, Sequence[int], int, torch.Generator], Candidates
]

MOST_SPARE = 20_000
"""Examples of the warm start that are looked at: enough, and quick to compare with others."""


@dataclass(frozen=True, slots=True)
class View:
    """How candidates are made, and whether the server knows which classes will be turned."""

    suggest: Suggest
    knows_sources: bool = False


SUGGESTED: Mapping[str, View] = {
    "relabelled": View(relabelled, knows_sources=True),
    "relabelled-any": View(relabelled),
    "triggers": View(triggers),
}
"""Views of poison that need none. In all of them the server knows what is aimed at."""


def with_suggested_poison(data: TaskData, view: str, seed: int) -> TaskData:
    """Let the server have as many candidates as it would have had poisoned examples."""
    count, aim = len(data.server_poison), aim_of(data)
    if not count:
        return data
    chosen, draw = SUGGESTED[view], generator(seed, "suggested", view)
    spare = spare_examples(data, seed)
    sources = aim.sources if chosen.knows_sources else None
    stored = Examples(data.as_stored(spare.inputs), spare.labels)
    made = chosen.suggest(stored, sources, (aim.target,), count, draw).examples
    inputs = data.as_input(made.inputs)
    return replace(data, server_poison=Examples(inputs, made.labels))


def aim_of(data: TaskData) -> Aim:
    """Return what the backdoor turns into what."""
    if data.aim is None:
        raise SettingsError("this task does not say which classes its backdoor turns into which")
    return data.aim


def spare_examples(data: TaskData, seed: int) -> Examples:
    """Return clean examples of the server beyond those for its set, each once, in random order.

    None has an input that is held for the defense set, that models are judged by or that the
    attacker has, stamped or not.
    """
    held = data.attacker
    others = [data.server_clean.inputs, data.test.inputs, data.backdoor_test.inputs]
    others += [held.clean.inputs, held.poison.inputs]
    others += [] if data.originals is None else [data.originals]
    seen = {key for inputs in others for key in content_keys(inputs)}
    order = torch.randperm(len(data.warm), generator=generator(seed, "spare"))
    drawn = data.warm.take(order[:MOST_SPARE])
    return drawn.take(_first_of_each(drawn.inputs, seen))


def _first_of_each(inputs: Tensor, seen: set[bytes]) -> Tensor:
    rows: list[int] = []
    for row, key in enumerate(content_keys(inputs)):
        if key not in seen:
            seen.add(key)
            rows.append(row)
    return torch.tensor(rows, dtype=torch.int64)
