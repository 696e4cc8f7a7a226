"""IDX files, gzipped or not: the format of MNIST and EMNIST."""

import gzip
import math
import zlib
from pathlib import Path
from typing import BinaryIO

import torch
from jaxtyping import UInt8
from torch import Tensor

from datadefense.data.errors import DataError, one_line
from datadefense.examples import Examples

MAX_BYTES = 1 << 31
_GZIP, _UNSIGNED_BYTE = b"\x1f\x8b", 8


def read_idx(path: Path) -> UInt8[Tensor, "..."]:
    """Read an IDX file of unsigned bytes; header and length are checked."""
    if not path.is_file():
        raise DataError(f"{path} is not a file")
    try:
        with path.open("rb") as plain:
            packed = plain.read(2) == _GZIP
            plain.seek(0)
            if not packed:
                return _read(path, plain)
            with gzip.open(plain) as unpacked:
                return _read(path, unpacked)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {one_line(error)}") from error


def read_idx_examples(images: Path, labels: Path, *, transposed: bool = False) -> Examples:
    """Read images as uint8 [N, 1, H, W] and labels as int64.

    ``transposed`` says that the file holds each image with rows and columns exchanged, as EMNIST's
    do; they come out upright.
    """
    pixels, classes = read_idx(images), read_idx(labels)
    if pixels.ndim != 3:
        raise DataError(f"{images} must hold images, found {pixels.ndim} dimensions")
    if classes.ndim != 1:
        raise DataError(f"{labels} must hold labels, found {classes.ndim} dimensions")
    if len(pixels) != len(classes):
        raise DataError(f"{images} has {len(pixels)} images, {labels.name} {len(classes)} labels")
    upright = pixels.transpose(1, 2).contiguous() if transposed else pixels
    return Examples(upright.unsqueeze(1), classes.long())


def _read(path: Path, file: BinaryIO | gzip.GzipFile) -> Tensor:
    start = file.read(4)
    if len(start) != 4 or start[:2] != b"\0\0" or start[2] != _UNSIGNED_BYTE or start[3] == 0:
        raise DataError(f"{path} is not an IDX file of unsigned bytes")
    header = file.read(4 * start[3])
    if len(header) != 4 * start[3]:
        raise DataError(f"{path} ends within its header")
    shape = [int.from_bytes(header[at : at + 4], "big") for at in range(0, len(header), 4)]
    size = math.prod(shape)
    if not 0 < size <= MAX_BYTES:
        raise DataError(f"{path} claims {size} values, expected 1 to {MAX_BYTES}")
    content = bytearray(file.read(size + 1))
    if len(content) != size:
        found = f"{len(content)}" if len(content) < size else f"more than {size}"
        raise DataError(f"{path} has {found} values, its header says {size}")
    return torch.frombuffer(content, dtype=torch.uint8).view(shape)
