"""Memory for a matrix of updates, in huge pages; and the peak memory of a process. Linux only."""

import ctypes
import errno
import mmap
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

LARGE = 16 << 20
"""Bytes from which huge pages are faster: a page fault for each 4 kB costs more than the copy."""


def empty_matrix(rows: int, columns: int, dtype: torch.dtype) -> Float[Tensor, "rows columns"]:
    """Return a matrix to be filled, in huge pages where it is large and the system has them."""
    matrix = torch.empty(rows, columns, dtype=dtype)
    _ask_for_huge_pages(matrix)
    return matrix


class GrowingMemory:
    """A matrix in memory that can get more rows without copying the old ones."""

    __slots__ = ("_columns", "_dtype", "_map")

    def __init__(self, columns: int, dtype: torch.dtype) -> None:
        self._columns = columns
        self._dtype = dtype
        self._map: mmap.mmap | None = None

    def grow(self, rows: int) -> Float[Tensor, "rows columns"]:
        """Return a matrix of this many rows, the old ones first.

        Where a tensor over the old one is still alive, or the system cannot move memory, the old
        rows are copied. If there is no memory it raises OSError and keeps the old rows.
        """
        size = rows * self._columns * self._dtype.itemsize
        try:
            self._map = _remapped(self._map, size)
        except OSError as error:
            raise OSError(
                error.errno or errno.ENOMEM,
                f"the updates of a round need {size} bytes of memory: {error.strerror}",
            ) from error
        # Through numpy: as long as its array lives, the memory is in use and is not moved.
        flat = torch.from_numpy(np.frombuffer(self._map, dtype=np.uint8))
        matrix = flat.view(self._dtype).view(rows, self._columns)
        _ask_for_huge_pages(matrix)
        return matrix


def _remapped(old: mmap.mmap | None, size: int) -> mmap.mmap:
    """Return memory of this size that begins with the content of the old one."""
    if old is not None:
        try:
            old.resize(size)
        except (BufferError, SystemError):
            pass  # in use, or a system without mremap
        else:
            return old
    new = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if old is not None:
        with memoryview(new) as to, memoryview(old) as held:
            to[: len(old)] = held
    return new


def _ask_for_huge_pages(matrix: Tensor) -> None:
    advice: int | None = getattr(mmap, "MADV_HUGEPAGE", None)
    if matrix.nbytes >= LARGE and advice is not None:
        start = -(-matrix.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
        madvise()(start, matrix.data_ptr() + matrix.nbytes - start, advice)


@lru_cache(maxsize=1)
def madvise() -> Callable[[int, int, int], int]:
    """Return the system's function: address, length and advice to 0, or -1 with errno set."""
    function = ctypes.CDLL(None, use_errno=True).madvise
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return function


def peak_memory_mb(process: int | str = "self") -> float | None:
    """Return the peak resident memory of a process; None where the system does not report it.

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
