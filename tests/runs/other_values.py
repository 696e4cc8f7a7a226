"""For every field of an experiment another value that is allowed, found by its type."""

import dataclasses
from typing import Literal, get_args, get_origin, get_type_hints

from datadefense.runs.config import Experiment

WORDS = {
    "setup": "cifar10-trigger",
    "defense": "krum",
    "attack": "pgd",
    "dataset": "mnist",
    "model": "vgg9",
    "defense_folder": "my-set",
    "defense_digest": "0123456789abcdef",
}
TOGETHER = {"defense_digest": ("defense_folder",)}
"""Fields that go only with others."""


def _other(name, value, hint):
    if name in WORDS:
        return WORDS[name]
    if get_origin(hint) is Literal:
        return next(choice for choice in get_args(hint) if choice != value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value - 1 if value > 1 else value + 1
    if isinstance(value, float):
        return value / 2 or 0.5
    return 3 if value is None else {"beta": "0.3"}


def other_values(name):
    """What to replace so that the field has another value than the default."""
    hints, defaults = get_type_hints(Experiment), dataclasses.asdict(Experiment())
    names = (name, *TOGETHER.get(name, ()))
    return {one: _other(one, defaults[one], hints[one]) for one in names}
