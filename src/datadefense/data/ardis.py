"""ARDIS: digits of Swedish church records, 28x28, in the text files of its official download.

``ARDIS_train_2828.csv`` and its three companions are, in spite of their ending, separated by
blanks: 784 pixel values a row from 0 to 255 (white digit on black, upright), and labels one-hot in
ten columns.
"""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from datadefense.data.errors import DataError, one_line
from datadefense.examples import Examples

SIDE, CLASSES = 28, 10


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
    if not path.is_file():
        raise DataError(f"{path} is not a file")
    try:
        with path.open("rb") as file:
            if not any(line.strip() for line in file):
                raise DataError(f"{path} is empty")
        table = np.loadtxt(path, dtype=np.float32, ndmin=2, comments=None)
    except DataError:
        raise
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a table of numbers: {one_line(error)}") from error
    if table.shape[1] != columns:
        raise DataError(f"{path} has {table.shape[1]} columns, expected {columns}")
    if not np.isfinite(table).all():
        raise DataError(f"{path} holds numbers that are not finite")
    return table
