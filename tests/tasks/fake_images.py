"""Data sets of noise in the place of the real ones: enough cars, small enough to be drawn."""

from functools import cache

import torch

from datadefense.core.examples import Examples
from datadefense.core.rng import generator
from datadefense.tasks import images

COUNTS = {"train": 2000, "test": 400}
SHAPES = {
    "cifar10": (3, 32, 32),
    "cifar100": (3, 32, 32),
    "southwest": (3, 32, 32),
    "mnist": (1, 28, 28),
    "emnist-digits": (1, 28, 28),
    "ardis": (1, 28, 28),
}


@cache
def fake_images(name, _, split, **_options):
    """As `load_images`: half of the examples are of class 1, the others of class 0.

    Every fifth digit of ardis is a seven.
    """
    draw, count = generator(0, name, split), COUNTS[split]
    pixels = torch.randint(256, (count, *SHAPES[name]), generator=draw, dtype=torch.uint8)
    labels = torch.arange(count) % 2
    return Examples(pixels, labels if name != "ardis" else 7 * (torch.arange(count) % 5 == 0))


def use_fake_images(patch):
    """Let all image tasks read noise; ``patch`` undoes it."""
    patch.setattr(images, "load_images", fake_images)
