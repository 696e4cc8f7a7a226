"""Folders with examples of digits-edge, sound or not."""

from functools import cache

import torch

from datadefense.defense_sets.folder import DefenseSetSource, write_defense_folder
from datadefense.runs.build import load_data
from datadefense.runs.configure import configure


@cache
def digits():
    """The data of digits-edge."""
    return load_data(configure("digits-edge", "cpu", {}), None)


def pixels(inputs):
    """Digits of digits-edge as the pixels they were."""
    return ((inputs * 0.3081 + 0.1307) * 255).round().to(torch.uint8)


def source(**changes):
    """Twelve sound examples of digits-edge, or what ``changes`` makes of them."""
    clean = digits().server_clean
    fields = {
        "inputs": pixels(clean.inputs[:12]),
        "labels": clean.labels[:12],
        "known_clean": torch.arange(12) < 6,
    }
    return DefenseSetSource(**(fields | changes))


def own(folder, **changes):
    """Write such a set."""
    written = source(**changes)
    write_defense_folder(written, folder)
    return written
