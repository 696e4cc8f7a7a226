"""Rows: a matrix that grows with the rows that are used, not with the announced number.

Announcing many rows costs an attacker nothing (a folder of 60,000 empty links). So a large matrix
starts small and doubles. Rows are not copied when it grows: the system remaps the memory, and a
file is extended in place. A small matrix is allocated at once.
"""

from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.kernels.memory import GrowingMemory, empty_matrix
from datadefense.kernels.spill import GrowingFile, Spill

AT_ONCE = 1 << 28
"""Bytes up to which a matrix is allocated at once; also the first part of a larger one."""


class Store(Protocol):
    """Storage of a matrix: `grow` returns all rows, the old ones with their content.

    Nothing may still refer to the matrix that it returned before.
    """

    def grow(self, rows: int) -> Float[Tensor, "rows columns"]:
        """Return a matrix of this many rows."""


class Rows:
    """A matrix to be filled row by row, of ``most`` rows at the most.

    A view that is kept while the matrix grows causes a copy, and shows the old matrix.
    """

    __slots__ = ("_matrix", "_most", "_store")

    def __init__(self, most: int, columns: int, dtype: torch.dtype, spill: Spill | None) -> None:
        width = columns * dtype.itemsize
        first = min(most, max(1, AT_ONCE // max(1, width)))
        self._most = most
        self._store: Store
        if spill is not None and most * width > spill.above:
            self._store = GrowingFile(spill, columns, dtype)
        elif first < most:
            self._store = GrowingMemory(columns, dtype)
        else:
            self._store = _Whole(columns, dtype)
        self._matrix: Tensor | None = self._store.grow(first)

    def row(self, place: int) -> Float[Tensor, " columns"]:
        """Return a row (new: of any content); ``place`` is at most one beyond the last row."""
        matrix = self._taken()
        if place == len(matrix) < self._most:
            rows = min(self._most, 2 * len(matrix))
            self._matrix = None
            del matrix
            matrix = self._matrix = self._store.grow(rows)
        return matrix[place]

    def first(self, count: int) -> Float[Tensor, "count columns"]:
        """Return the first rows, as one matrix."""
        return self._taken()[:count]

    def _taken(self) -> Tensor:
        if self._matrix is None:
            raise ValueError("the matrix could not grow")
        return self._matrix


class _Whole:
    """Memory that is allocated once."""

    __slots__ = ("columns", "dtype")

    def __init__(self, columns: int, dtype: torch.dtype) -> None:
        self.columns = columns
        self.dtype = dtype

    def grow(self, rows: int) -> Float[Tensor, "rows columns"]:
        return empty_matrix(rows, self.columns, self.dtype)
