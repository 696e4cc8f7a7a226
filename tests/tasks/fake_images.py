"""Data sets of noise in the place of the real ones: enough cars, small enough to be drawn."""

from functools import cache

import torch

from datadefense.core.examples import Examples
from datadefense.core.rng import generator

COUNTS = {"train": 2000, "test": 400}
SHAPES = {"cifar10": (3, 32, 32), "southwest": (3, 32, 32), "mnist": (1, 28, 28)}


@cache
def fake_images(name, _, split, **_options):
    """As `load_images`: half of the examples are of class 1, the others of class 0."""
    draw, count = generator(0, name, split), COUNTS[split]
    pixels = torch.randint(256, (count, *SHAPES[name]), generator=draw, dtype=torch.uint8)
    return Examples(pixels, torch.arange(count) % 2)
