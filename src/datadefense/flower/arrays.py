"""Arrays of a message, read without trust and without a copy; and models as messages.

Flower sends an array as the bytes of a ``.npy`` file. Its own reader allocates whatever the header
claims; here the header must agree with the number of bytes that came.
"""

import warnings
from collections.abc import Mapping
from functools import lru_cache
from io import BytesIO

import numpy as np
import torch
from flwr.app import Array, ArrayRecord
from numpy.lib import format as npy
from torch import Tensor

LONGEST_HEADER = 10_000
"""Bytes of a header that are parsed."""


def read_array(array: Array) -> Tensor:
    """Return a tensor over the array's own bytes; it must not be written to."""
    if array.stype != "numpy.ndarray":
        raise ValueError(f"array is of kind {array.stype!r:.40}, expected numpy.ndarray")
    data = array.data
    shape, fortran, dtype, start = _header(data)
    if dtype.kind not in "biuf" or not dtype.isnative:
        raise ValueError(f"array is of dtype {dtype}, expected native numbers")
    claimed = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if claimed != len(data) - start:
        raise ValueError(f"array claims {claimed} bytes, {len(data) - start} came")
    flat = np.frombuffer(data, dtype, offset=start)
    values = flat.reshape(shape, order="F" if fortran else "C")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the memory is not ours to write: we do not
        return torch.from_numpy(values)


def _header(data: bytes) -> tuple[tuple[int, ...], bool, "np.dtype[np.generic]", int]:
    """Return shape, order, dtype and where the values begin."""
    size_bytes = {1: 2, 2: 4}.get(data[6] if len(data) > 6 else 0, 0)
    size = int.from_bytes(data[8 : 8 + size_bytes], "little")
    return _parsed(data[: min(8 + size_bytes + size, LONGEST_HEADER)])


@lru_cache(maxsize=4096)
def _parsed(header: bytes) -> tuple[tuple[int, ...], bool, "np.dtype[np.generic]", int]:
    """Parse a header, once for all nodes that send the same: it is evaluated as Python by NumPy."""
    file = BytesIO(header)
    version = npy.read_magic(file)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"array is of npy version {version}, expected 1.0 or 2.0")
    shape, fortran, dtype = readers[version](file, max_header_size=LONGEST_HEADER)
    return shape, fortran, dtype, file.tell()


def read_record(record: ArrayRecord) -> dict[str, Tensor]:
    """Return the arrays of a record by name."""
    return {name: read_array(array) for name, array in record.items()}


def make_record(tensors: Mapping[str, Tensor]) -> ArrayRecord:
    """Return named tensors as a record, each with its own dtype."""
    return ArrayRecord({name: Array(tensor.numpy()) for name, tensor in tensors.items()})
