"""A matrix of updates that does not fit in memory: a mapping of a temporary file.

It is an ordinary tensor, so every defense can use it. Mapped pages stay resident until `release`
drops them; the content stays in the file, and in the system's cache while there is room. Linux
only.
"""

import ctypes
import errno
import mmap
import os
import shutil
import weakref
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.kernels.memory import empty_matrix, madvise

OPEN_FILES = "/proc/self/fd/"
"""Where Linux lists a process's open files: the only path to a file without a name. A tensor keeps
the path of the file that it maps, so this prefix tells which tensors are ours."""


@dataclass(frozen=True, slots=True)
class Spill:
    """Where the updates of a round go when they are too large for memory.

    Args:
        folder: a folder on a disk with room for a round's updates (``/tmp`` may be memory).
        above: most bytes that stay in memory.
    """

    folder: Path
    above: int = 1_000_000_000

    def __post_init__(self) -> None:
        if self.above < 0:
            raise ValueError(f"above must be >= 0, got {self.above}")

    def empty(self, rows: int, columns: int, dtype: torch.dtype) -> Float[Tensor, "rows columns"]:
        """Return a matrix to be filled, in memory if it fits, else in a file.

        The file never has a name, so nothing is left behind however the process ends; its disk
        space is free again when the last tensor over it is gone. The space is reserved before the
        matrix is used: a full disk is an error here, and not a signal that ends the process later.
        (Not on file systems that copy on write, such as btrfs.)
        """
        if rows * columns * dtype.itemsize <= self.above:
            return empty_matrix(rows, columns, dtype)
        return GrowingFile(self, columns, dtype).grow(rows)


class GrowingFile:
    """A matrix in a file without a name, which can get more rows without copying the old ones."""

    __slots__ = ("__weakref__", "_columns", "_dtype", "_file", "_size", "_spill")

    def __init__(self, spill: Spill, columns: int, dtype: torch.dtype) -> None:
        if not Path(OPEN_FILES).is_dir():
            raise OSError(errno.ENOSYS, "spilling updates to a file needs Linux", str(spill.folder))
        self._spill = spill
        self._columns = columns
        self._dtype = dtype
        self._size = 0
        with TemporaryFile(dir=spill.folder) as file:
            self._file = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._file)

    def grow(self, rows: int) -> Float[Tensor, "rows columns"]:
        """Return a matrix of this many rows, the old ones first; its disk space is reserved."""
        size = rows * self._columns * self._dtype.itemsize
        self._reserve(size)
        name = f"{OPEN_FILES}{self._file}"
        flat = torch.from_file(name, shared=True, size=rows * self._columns, dtype=self._dtype)
        return flat.view(rows, self._columns)

    def _reserve(self, size: int) -> None:
        folder = self._spill.folder
        free = shutil.disk_usage(folder).free
        try:
            if size - self._size > free:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.posix_fallocate(self._file, 0, size)
        except OSError as error:
            raise OSError(
                error.errno or errno.EIO,
                f"the updates of a round need {size - self._size} bytes, {free} are free: "
                f"{error.strerror}",
                str(folder),
            ) from error
        self._size = size


def is_spilled(tensor: Tensor) -> bool:
    """Say whether the tensor, or what it is a view of, lies in a file of `Spill`."""
    name = tensor.untyped_storage().filename if tensor.device.type == "cpu" else None
    return name is not None and name.startswith(OPEN_FILES)


def release(tensor: Tensor) -> None:
    """Drop all resident pages of a matrix in a file, given the matrix or a view of it.

    Nothing is lost: a later read gets the content from the file. Other tensors are left alone.
    """
    if not is_spilled(tensor):
        return
    memory = tensor.untyped_storage()
    if madvise()(memory.data_ptr(), memory.nbytes(), mmap.MADV_DONTNEED) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"madvise: {os.strerror(number)}")
