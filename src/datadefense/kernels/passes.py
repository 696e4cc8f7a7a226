"""Read a matrix of updates in parts, so that a matrix in a file need not be in memory as a whole.

Of a matrix in memory the parts are views. Of a matrix in a file (`kernels.spill`) each part is
copied and the file's pages are released: the system may map megabytes around every value that is
read, so reading a few columns of many rows in place can make the whole matrix resident.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from datadefense.kernels.spill import is_spilled, release

MOST_RESIDENT = 128_000_000
"""Bytes of a spilled matrix that are mapped at a time, and bytes of the copy of a part."""
AROUND = 4 << 20
"""Bytes that may be mapped around what is read of a row: a huge page at either end."""
ALIGNED = 512
"""Columns of a part are a multiple of this, so that a product computed in parts has the bits of the
whole. With other widths it has not: BLAS sums the last few columns in another way."""
LINE = 16
"""Numbers in a cache line. Rows of a copy have the same alignment as those of the matrix: on some
processors BLAS computes aligned rows in another way, which gives other bits."""


def column_parts(
    updates: Float[Tensor, "clients dim"], stop: int, width: int
) -> Iterator[tuple[slice, Float[Tensor, "clients width"]]]:
    """Yield the columns up to ``stop``, ``width`` at a time, with their position.

    They must not be written, and are valid only until the next are asked for.
    """
    spilled = is_spilled(updates)
    held_width = max(width, _fitting(updates, width)) if spilled else max(1, stop)
    scratch = _scratch(updates, min(held_width, stop)) if spilled else updates
    for start in range(0, stop, held_width):
        held = updates[:, start : min(start + held_width, stop)]
        if spilled:
            held = _copied(held, scratch)
        for place in range(0, held.shape[1], width):
            columns = held[:, place : place + width]
            yield slice(start + place, start + place + columns.shape[1]), columns


def whole_columns(
    updates: Float[Tensor, "clients dim"],
) -> Iterator[tuple[slice, Float[Tensor, "clients width"]]]:
    """Yield all columns at once; of a spilled matrix, as many as may be resident."""
    dim = updates.shape[1]
    if not is_spilled(updates):
        return iter([(slice(0, dim), updates)])
    return column_parts(updates, dim, max(ALIGNED, _fitting(updates, ALIGNED)))


def last_columns(
    updates: Float[Tensor, "clients dim"], start: int
) -> Float[Tensor, "clients width"]:
    """Return the columns from ``start`` on; for a few columns."""
    columns = updates[:, start:]
    return _copied(columns, _scratch(columns, columns.shape[1])) if is_spilled(updates) else columns


def chosen_columns(
    updates: Float[Tensor, "clients dim"], places: Int64[Tensor, " chosen"]
) -> Float[Tensor, "clients chosen"]:
    """Return a copy of some columns, given by their places in growing order."""
    parts = [
        columns[:, places[(places >= part.start) & (places < part.stop)] - part.start]
        for part, columns in whole_columns(updates)
    ]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def whole_rows(updates: Float[Tensor, "clients dim"]) -> Iterator[slice]:
    """Yield all rows at once; of a spilled matrix, as many as may be resident."""
    clients, dim = updates.shape
    step = max(1, clients)
    if is_spilled(updates):
        step = max(1, MOST_RESIDENT // (dim * updates.element_size() + AROUND))
    for start in range(0, clients, step):
        yield slice(start, min(start + step, clients))
        release(updates)


def _fitting(updates: Float[Tensor, "clients dim"], multiple: int) -> int:
    """Return how many columns may be resident, rounded down to a multiple."""
    return MOST_RESIDENT // (len(updates) * updates.element_size()) // multiple * multiple


def _scratch(updates: Float[Tensor, "clients dim"], width: int) -> Float[Tensor, " size"]:
    """Return memory for a copy of so many columns, whatever their alignment."""
    return updates.new_empty(len(updates) * (width + LINE) + LINE)


def _copied(
    columns: Float[Tensor, "clients width"], scratch: Float[Tensor, " size"]
) -> Float[Tensor, "clients width"]:
    stride = columns.shape[1] + (columns.stride(0) - columns.shape[1]) % LINE
    copy = scratch.as_strided(columns.shape, (stride, 1), columns.storage_offset() % LINE)
    for rows in whole_rows(columns):
        copy[rows] = columns[rows]
    return copy
