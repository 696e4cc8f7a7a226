"""Median and trimmed mean of every column at once, where rows have unequal weights."""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.kernels.sums import BLOCK, CHUNK
from datadefense.kernels.workers import Part, for_each_part

ROUNDING = 1e-9
"""Shares that differ by no more are equal: a rounded share must not let a huge value in."""
Reduce = Callable[
    [Float[Tensor, "clients width"], Float64[Tensor, "clients width"], Float64[Tensor, "_ width"]],
    Float64[Tensor, " width"],
]
"""From sorted values, their shares and the sums of shares up to each, one value a column."""


def weighted_median(
    updates: Float[Tensor, "clients dim"], shares: Float64[Tensor, " clients"]
) -> Float[Tensor, " dim"]:
    """Return the least value up to which there is half of the weight; shares sum to 1.

    Where it is exactly half, the mean of this value and the next.
    """

    def reduce(values: Tensor, _: Tensor, upto: Tensor) -> Tensor:
        low = (upto >= 0.5 - ROUNDING).to(torch.uint8).argmax(0, keepdim=True)
        high = (upto > 0.5 + ROUNDING).to(torch.uint8).argmax(0, keepdim=True)
        middle = 0.5 * values.gather(0, low).double() + 0.5 * values.gather(0, high).double()
        return middle[0]

    return _reduced(updates, shares, reduce)


def weighted_trimmed_mean(
    updates: Float[Tensor, "clients dim"], shares: Float64[Tensor, " clients"], trim: float
) -> Float[Tensor, " dim"]:
    """Return the mean of each column without this much weight at either end; shares sum to 1."""
    if not 0 <= 2 * trim < 1 - ROUNDING:
        raise ValueError(f"weighted trimmed mean needs 0 <= 2 * trim < 1, got trim={trim}")

    def reduce(values: Tensor, mass: Tensor, upto: Tensor) -> Tensor:
        kept = upto.clamp(max=1 - trim) - (upto - mass).clamp(min=trim)
        kept[kept <= ROUNDING] = 0
        return (kept / kept.sum(0) * values).sum(0)

    return _reduced(updates, shares, reduce)


def _reduced(
    updates: Float[Tensor, "clients dim"], shares: Float64[Tensor, " clients"], reduce: Reduce
) -> Float[Tensor, " dim"]:
    clients, dim = updates.shape
    result = updates.new_empty(dim)

    def work(parts: Iterator[Part]) -> None:
        for part, columns in parts:
            values, order = torch.sort(columns, dim=0, stable=True)
            mass = shares[order]
            result[part] = reduce(values, mass, mass.cumsum(0)).to(result.dtype)

    for_each_part(updates, dim, max(BLOCK, 4 * CHUNK // clients), work)
    return result
