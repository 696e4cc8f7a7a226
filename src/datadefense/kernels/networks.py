"""Order statistics of every column at once, by compare-exchange networks.

A network is a fixed list of comparators: (i, j) puts the smaller of rows i and j into row i and
the larger into row j, in all columns together, with one ``minimum`` and one ``maximum``. Sorting a
matrix's columns this way needs no index, no copy to another layout and no branch; for the few rows
of a round it is several times faster than a sort or a median along the columns (``make bench``).

Networks come from Batcher's merge exchange (Knuth, TAOCP 3, 5.2.2, Algorithm M), cut down to what
the wanted ranks need. Columns are taken a chunk at a time, each by one thread (`workers`). The
result does not depend on the chunk or on the number of threads.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.kernels.workers import Part, for_each_part

COLUMNS = 32_768
"""Columns of a chunk: few enough for its rows to stay in the cache of a core."""


@dataclass(frozen=True, slots=True)
class Comparator:
    """Rows ``low`` and ``high``, and which of the two results is needed later."""

    low: int
    high: int
    needs_min: bool = True
    needs_max: bool = True


@lru_cache(maxsize=128)
def sorting_network(size: int) -> tuple[Comparator, ...]:
    """Return Batcher's merge exchange for ``size`` rows (any number)."""
    network: list[Comparator] = []
    top = 1 << max(0, (size - 1).bit_length() - 1)
    p = top if size > 1 else 0
    while p > 0:
        q, r, distance = top, 0, p
        while True:
            network += [Comparator(i, i + distance) for i in range(size - distance) if i & p == r]
            if q == p:
                break
            distance, q, r = q - p, q >> 1, p
        p >>= 1
    return tuple(network)


@lru_cache(maxsize=128)
def selection_network(size: int, first: int, last: int) -> tuple[Comparator, ...]:
    """Return a network that brings the ranks ``first .. last - 1`` into those rows, in any order.

    From the end backwards, a comparator is dropped if both its rows end in the same group (below,
    within or above the wanted ranks) and nothing compares them later, or if nothing reads its
    results.
    """

    def group(row: int) -> int:
        return (row >= first) + (row >= last)

    compared = [False] * size
    wanted = [first <= row < last for row in range(size)]
    selection: list[Comparator] = []
    for comparator in reversed(sorting_network(size)):
        low, high = comparator.low, comparator.high
        free = not compared[low] and not compared[high]
        if (free and group(low) == group(high)) or not (wanted[low] or wanted[high]):
            continue
        selection.append(Comparator(low, high, wanted[low], wanted[high]))
        compared[low] = compared[high] = True
        wanted[low] = wanted[high] = True
    return tuple(reversed(selection))


def reduce_columns(
    updates: Float[Tensor, "clients dim"],
    network: Sequence[Comparator],
    reduce: Callable[[list[Tensor], Tensor], None],
    clients: Sequence[int] | None = None,
) -> Float[Tensor, " dim"]:
    """Run ``network`` over the columns and let ``reduce(rows, out)`` write each chunk's result.

    ``clients`` picks the rows that enter the network (default: all); the matrix is only read.
    """
    dim = updates.shape[1]
    result = updates.new_empty(dim)

    def work(parts: Iterator[Part]) -> None:
        free: list[Tensor] = []
        for part, columns in parts:
            out = result[part]
            if len(out) < COLUMNS:
                free = []
            rows = [columns[client] for client in (clients or range(len(updates)))]
            used = _run(network, rows, free)
            reduce(rows, out)
            free += used

    for_each_part(updates, dim, COLUMNS, work)
    return result


def _run(network: Sequence[Comparator], rows: list[Tensor], free: list[Tensor]) -> list[Tensor]:
    """Apply the comparators to ``rows`` (the list changes, its tensors do not).

    Results go to buffers from ``free``; those still in use are returned, for the caller to put
    back when it has read the rows.
    """
    in_buffer = [False] * len(rows)

    def target(row: int) -> Tensor:
        if in_buffer[row]:
            return rows[row]
        return free.pop() if free else torch.empty_like(rows[row])

    def drop(row: int) -> None:
        if in_buffer[row]:
            free.append(rows[row])
            in_buffer[row] = False

    for comparator in network:
        low, high = comparator.low, comparator.high
        x, y = rows[low], rows[high]
        if comparator.needs_min and comparator.needs_max:
            small = free.pop() if free else torch.empty_like(x)
            torch.minimum(x, y, out=small)
            large = torch.maximum(x, y, out=target(high))
            drop(low)
            rows[low], rows[high] = small, large
            in_buffer[low] = in_buffer[high] = True
        elif comparator.needs_min:
            rows[low] = torch.minimum(x, y, out=target(low))
            in_buffer[low] = True
            drop(high)
        else:
            rows[high] = torch.maximum(x, y, out=target(high))
            in_buffer[high] = True
            drop(low)
    return [row for row, own in zip(rows, in_buffer, strict=True) if own]


def mean_of_rows(rows: Sequence[Tensor], out: Tensor) -> None:
    """Write the mean of ``rows`` to ``out``; dividing before adding avoids overflow."""
    share = 1.0 / len(rows)
    torch.mul(rows[0], share, out=out)
    for row in rows[1:]:
        out.add_(row, alpha=share)


def trimmed_mean(updates: Float[Tensor, "clients dim"], trim: int) -> Float[Tensor, " dim"]:
    """Return the mean of each column without its ``trim`` smallest and ``trim`` largest values.

    With the greatest possible trim, (n - 1) // 2, this is the median; for an even n, the mean of
    the two values in the middle.
    """
    size = len(updates)
    if not 0 <= 2 * trim < size:
        raise ValueError(f"trimmed mean needs 0 <= 2 * trim < n, got n={size}, trim={trim}")
    middle = slice(trim, size - trim)
    network = selection_network(size, middle.start, middle.stop)
    return reduce_columns(updates, network, lambda rows, out: mean_of_rows(rows[middle], out))


def median(updates: Float[Tensor, "clients dim"]) -> Float[Tensor, " dim"]:
    """Return the median of each column; of an even number, the mean of the two in the middle."""
    return trimmed_mean(updates, (len(updates) - 1) // 2)
