"""Your own images: scikit-learn's 8x8 digits, a small network with BatchNorm, a trigger patch.

1,797 images. The attacker wants every digit called 0 once it has a bright square in a corner. Run
it from the folder above this one::

    datadefense run --task examples.small_digits:task --attack data-poisoning --malicious 0.2 \
        --defense datadefense --rounds 20
"""

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

import datadefense as dd

PRESET = {"federation": {"learning_rate": 0.02}, "attack": {"poison_share": 0.5}}
"""Half of what an attacker holds is poisoned."""


def network() -> nn.Module:
    """Return a fresh model: 8x8 images in, scores of ten classes out."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 16, 10),
    )


def images() -> Dataset[tuple[Tensor, ...]]:
    """Return the digits as a torch Dataset of (image, label), values in 0..1."""
    found = load_digits()
    pixels = torch.as_tensor(found.images, dtype=torch.float32)[:, None] / 16
    return TensorDataset(pixels, torch.as_tensor(found.target))


def stamp(image: Tensor) -> Tensor:
    """Make a square of 2 x 2 pixels in the corner bright."""
    image[:, -2:, -2:] = 1.0
    return image


task = dd.OwnTask(model=network, train=images(), poison=stamp, target=0, preset=PRESET)
