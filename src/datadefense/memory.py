"""Memory for a matrix of updates, and what the system is told about it. Advice is Linux only."""

import ctypes
import mmap
from collections.abc import Callable
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

LARGE = 16 << 20
"""Bytes from which on huge pages pay: a page fault for each 4 kB costs more than the copy."""


def empty_matrix(rows: int, columns: int, dtype: torch.dtype) -> Float[Tensor, "rows columns"]:
    """Return a matrix to be filled, in huge pages where it is large and the system has them."""
    matrix = torch.empty(rows, columns, dtype=dtype)
    advice: int | None = getattr(mmap, "MADV_HUGEPAGE", None)
    if matrix.nbytes >= LARGE and advice is not None:
        start = -(-matrix.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
        madvise()(start, matrix.data_ptr() + matrix.nbytes - start, advice)
    return matrix


@lru_cache(maxsize=1)
def madvise() -> Callable[[int, int, int], int]:
    """Return the system's function: address, length and advice to 0, or -1 with errno set."""
    function = ctypes.CDLL(None, use_errno=True).madvise
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return function
