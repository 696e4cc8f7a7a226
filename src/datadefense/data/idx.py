"""IDX files, gzipped or not: the format of MNIST and EMNIST."""

import gzip
import math
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import torch
from jaxtyping import UInt8
from torch import Tensor

from datadefense.core.examples import Examples
from datadefense.data.errors import DataError
from datadefense.data.file_content import opened

MAX_BYTES = 1 << 28
"""Most values of a file; the largest, EMNIST's training images, has 188 million."""
MAX_DIMENSIONS = 4
SIDE, CHUNK = 28, 1 << 20
_GZIP, _UNSIGNED_BYTE = b"\x1f\x8b", 8


def read_idx(path: Path, expected: Sequence[int | None] | None = None) -> UInt8[Tensor, "..."]:
    """Read an IDX file of unsigned bytes; header and length are checked before it is unpacked.

    ``expected`` is the shape that it must have, with None for a size that may be any.
    """
    with opened(path, MAX_BYTES + 4 * MAX_DIMENSIONS + 4) as plain:
        packed = plain.read(2) == _GZIP
        plain.seek(0)
        if not packed:
            return _read(path, plain, expected)
        with gzip.open(plain) as unpacked:
            return _read(path, unpacked, expected)


def read_idx_examples(
    images: Path, labels: Path, *, transposed: bool = False, size: tuple[int, int] = (SIDE, SIDE)
) -> Examples:
    """Read images as uint8 [N, 1, H, W] and labels as int64; ``size`` is what each image has.

    There are as many images as labels, which are read first: so it is known what may be unpacked.

    ``transposed`` says that the file holds each image with rows and columns exchanged, as EMNIST's
    do; they come out upright.
    """
    classes = read_idx(labels, (None,))
    pixels = read_idx(images, (len(classes), *size))
    upright = pixels.transpose(1, 2).contiguous() if transposed else pixels
    return Examples(upright.unsqueeze(1), classes.long())


def _read(
    path: Path, file: BinaryIO | gzip.GzipFile, expected: Sequence[int | None] | None
) -> Tensor:
    start = file.read(4)
    if len(start) != 4 or start[:2] != b"\0\0" or start[2] != _UNSIGNED_BYTE:
        raise DataError(f"{path} is not an IDX file of unsigned bytes")
    if not 1 <= start[3] <= MAX_DIMENSIONS:
        raise DataError(
            f"{path} is not an IDX file of 1 to {MAX_DIMENSIONS} dimensions: it claims {start[3]}"
        )
    header = file.read(4 * start[3])
    if len(header) != 4 * start[3]:
        raise DataError(f"{path} ends within its header")
    shape = [int.from_bytes(header[at : at + 4], "big") for at in range(0, len(header), 4)]
    if expected is not None and not _fits(shape, expected):
        wanted = " x ".join("N" if size is None else str(size) for size in expected)
        raise DataError(f"{path} must hold {wanted} values, its header says {shape}")
    size = math.prod(shape)
    if not 0 < size <= MAX_BYTES:
        raise DataError(f"{path} claims {size} values, expected 1 to {MAX_BYTES}")
    content = bytearray()
    while len(content) <= size and (part := file.read(min(CHUNK, size + 1 - len(content)))):
        content += part
    if len(content) != size:
        found = f"{len(content)}" if len(content) < size else f"more than {size}"
        raise DataError(f"{path} has {found} values, its header says {size}")
    return torch.frombuffer(content, dtype=torch.uint8).view(shape)


def _fits(shape: Sequence[int], expected: Sequence[int | None]) -> bool:
    return len(shape) == len(expected) and all(
        wanted in (None, size) for size, wanted in zip(shape, expected, strict=True)
    )
