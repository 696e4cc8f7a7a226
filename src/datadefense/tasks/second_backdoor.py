"""A second backdoor at the same time: a bright square in a corner means class 0."""

from dataclasses import replace

import torch

from datadefense.core.content import rows_seen_in
from datadefense.core.examples import Examples
from datadefense.core.settings import SettingsError
from datadefense.tasks.base import TaskData

SIZE, LABEL = 4, 0
"""Width and height of the square in pixels, and what the attacker calls whatever has it."""


def with_second_backdoor(data: TaskData, known: bool) -> TaskData:
    """Let every other attack plant the square; with ``known`` half of the server's poison has it.

    The attacker has none of the server's squares. Success is then measured on as many examples of
    either backdoor.
    """
    if data.test.inputs.ndim != 4:
        raise SettingsError("second_backdoor needs images")
    held = data.attacker
    other = squares(held.clean, len(held.poison), data)
    poison = data.server_poison
    if known:
        half = len(poison) // 2
        spare = squares(data.warm, len(poison) - half + len(other), data)
        shared = torch.isin(torch.arange(len(spare)), rows_seen_in(spare.inputs, other.inputs))
        rest = (~shared).nonzero().flatten()[: len(poison) - half]
        poison = poison.take(torch.arange(half)).join(spare.take(rest))
    measured = squares(data.test, len(data.backdoor_test), data)
    return replace(
        data,
        attacker=replace(held, other=other),
        server_poison=poison,
        backdoor_test=data.backdoor_test.join(measured),
    )


def squares(examples: Examples, count: int, data: TaskData) -> Examples:
    """Return the first ``count`` examples of other classes with the square, called `LABEL`."""
    places = (examples.labels != LABEL).nonzero().flatten()[:count]
    stamped = examples.inputs[places].clone()
    stamped[..., :SIZE, :SIZE] = data.test.inputs.max()
    return Examples(stamped, torch.full((len(places),), LABEL))
