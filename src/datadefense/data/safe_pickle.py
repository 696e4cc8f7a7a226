"""Data sets that come as pickles: CIFAR's python batches and the Southwest images.

They are read by a reader of our own (``plain_pickle``), which knows plain data and no other.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from datadefense.core.examples import Examples
from datadefense.data.errors import DataError, refusing
from datadefense.data.file_content import read_at_most
from datadefense.data.plain_pickle import read_pickle

MAX_BYTES = 1 << 28
"""The largest of them, the training part of CIFAR-100, has 155 million."""
MAX_LABEL = 1 << 20


def read_plain(path: Path, *, max_bytes: int = MAX_BYTES) -> Any:
    """Read a pickle of plain data; anything else in it is a DataError, and is never run."""
    content = read_at_most(path, max_bytes)
    with refusing(f"{path} is not a pickle of plain data"):
        return read_pickle(content)


def read_cifar(paths: Sequence[Path], label_key: str) -> Examples:
    """Read python batches of CIFAR: images uint8 [N, 3, 32, 32], labels of ``label_key``."""
    images: list[Tensor] = []
    labels: list[Tensor] = []
    for path in paths:
        batch = read_plain(path)
        if not isinstance(batch, dict):
            raise DataError(f"{path} is not a batch of CIFAR")
        pixels, classes = (_named(batch, name) for name in ("data", label_key))
        if not _is_bytes(pixels) or pixels.ndim != 2 or pixels.shape[1] != 3 * 32 * 32:
            raise DataError(f"{path}: 'data' must be a uint8 array [N, 3072]")
        if not isinstance(classes, list) or not all(map(_is_label, classes)):
            raise DataError(f"{path}: {label_key!r} must be a list of integers 0 to {MAX_LABEL}")
        if len(classes) != len(pixels) or not classes:
            raise DataError(f"{path}: {len(pixels)} images, but {len(classes)} labels")
        images.append(torch.from_numpy(pixels.reshape(-1, 3, 32, 32).copy()))
        labels.append(torch.tensor(classes, dtype=torch.int64))
    return Examples(torch.cat(images), torch.cat(labels))


def read_image_array(path: Path) -> UInt8[Tensor, "n 3 h w"]:
    """Read a pickled uint8 array of images [N, H, W, 3], as the Southwest images are stored."""
    pixels = read_plain(path)
    if not _is_bytes(pixels) or pixels.ndim != 4 or pixels.shape[3] != 3 or not pixels.size:
        raise DataError(f"{path} must hold a uint8 array of images [N, H, W, 3]")
    return torch.from_numpy(np.array(pixels.transpose(0, 3, 1, 2), order="C"))


def _named(batch: dict[Any, Any], name: str) -> Any:
    """Return an entry whose key is text, or bytes as Python 2 wrote it."""
    return batch.get(name, batch.get(name.encode()))


def _is_bytes(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.uint8


def _is_label(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_LABEL
