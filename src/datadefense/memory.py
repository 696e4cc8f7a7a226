"""Memory: of a matrix of updates, in huge pages; and the most that a process has held. Linux."""

import ctypes
import mmap
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

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


def peak_memory_mb(process: int | str = "self") -> float | None:
    """Return the peak of a process's resident memory; None where the system does not tell.

    >>> peak = peak_memory_mb()
    >>> peak is None or peak > 1
    True
    """
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    sizes = [line.split()[1] for line in lines.splitlines() if line.startswith("VmHWM:")]
    return float(sizes[0]) / 1024 if sizes else None
