"""Random pictures: tasks and photos to make attack sets of."""

import torch

from datadefense.core.examples import Examples
from datadefense.core.rng import generator


def images(count, name, channels=3, side=8):
    shape = (count, channels, side, side)
    return torch.randint(256, shape, generator=generator(0, name), dtype=torch.uint8)


def task(count, classes, name, channels=3):
    return Examples(images(count, name, channels), torch.arange(count) % classes)


def rows_of(inputs):
    return [tuple(row.flatten().tolist()) for row in inputs]


def photos(count, name):
    """Rows 4k..4k+3 are the four rotations of a photo."""
    return torch.stack(
        [torch.rot90(photo, turns, (1, 2)) for photo in images(count, name) for turns in range(4)]
    )
