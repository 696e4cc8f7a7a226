"""ARDIS: digits of Swedish church records, 28x28, in the text files of its official download.

``ARDIS_train_2828.csv`` and its three companions are, in spite of their ending, separated by
blanks: 784 pixel values a row from 0 to 255 (white digit on black, upright), and labels one-hot in
ten columns.
"""

import io
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from datadefense.core.examples import Examples
from datadefense.data.errors import DataError, refusing
from datadefense.data.file_content import read_at_most

SIDE, CLASSES = 28, 10
MAX_BYTES = 1 << 28
"""Most bytes of a file; the largest has about 90 million."""


def read_ardis(images: Path, labels: Path) -> Examples:
    """Read images as uint8 [N, 1, 28, 28] and labels as int64."""
    pixels = _read(images, SIDE * SIDE)
    if pixels.min() < 0 or pixels.max() > 255:
        raise DataError(
            f"{images}: pixels must be 0 to 255, found {pixels.min():g} to {pixels.max():g}"
        )
    one_hot = _read(labels, CLASSES)
    if not np.isin(one_hot, (0, 1)).all() or not (one_hot.sum(1) == 1).all():
        raise DataError(f"{labels}: each row must have a single 1 among {CLASSES} columns")
    if len(pixels) != len(one_hot):
        raise DataError(f"{images} has {len(pixels)} rows, {labels.name} {len(one_hot)}")
    shades = np.rint(pixels).astype(np.uint8).reshape(-1, 1, SIDE, SIDE)
    return Examples(torch.from_numpy(shades), torch.from_numpy(one_hot.argmax(1)))


def _read(path: Path, columns: int) -> NDArray[np.float32]:
    content = read_at_most(path, MAX_BYTES)
    if not content.strip():
        raise DataError(f"{path} is empty")
    with refusing(f"{path} is not a table of numbers"):
        table = np.loadtxt(io.BytesIO(content), dtype=np.float32, ndmin=2, comments=None)
    if table.shape[1] != columns:
        raise DataError(f"{path} has {table.shape[1]} columns, expected {columns}")
    if not np.isfinite(table).all():
        raise DataError(f"{path} holds numbers that are not finite")
    return table
