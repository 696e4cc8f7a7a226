"""Rows: a matrix that grows with the rows that are taken, not with how many are announced.

Anybody can announce: a folder of 60,000 empty links costs its owner nothing. So a large matrix
begins small and doubles. Its rows are not copied when it does: memory is mapped anew by the
system, page by page, and a file grows where it is. A small one is made whole, at once.
"""

from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.kernels.memory import GrowingMemory, empty_matrix
from datadefense.kernels.spill import GrowingFile, Spill

AT_ONCE = 1 << 28
"""Bytes of a matrix that is made whole, and of the first part of a larger one."""


class Store(Protocol):
    """What a matrix lies in: asked for more rows, it returns them all, the old with their content.

    What it returned before must be gone by then.
    """

    def grow(self, rows: int) -> Float[Tensor, "rows columns"]:
        """Return a matrix of this many rows."""


class Rows:
    """A matrix to be filled row by row, of ``most`` rows at the most.

    A view of it that is kept while it grows costs a copy, and does not follow it.
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
        """Return a row, of any content where it is new; at most one behind the last one taken."""
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
    """Memory that is made once."""

    __slots__ = ("columns", "dtype")

    def __init__(self, columns: int, dtype: torch.dtype) -> None:
        self.columns = columns
        self.dtype = dtype

    def grow(self, rows: int) -> Float[Tensor, "rows columns"]:
        return empty_matrix(rows, self.columns, self.dtype)
