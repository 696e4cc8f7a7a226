r"""Squared distances between all pairs of updates.

:math:`D_{ij} = \lVert u_i - u_j \rVert^2 = G_{ii} + G_{jj} - 2 G_{ij}` with the Gram matrix G.
Two things make that identity dangerous, and both have picked the wrong client in other people's
Krum: G summed in float32 over millions of columns, and the subtraction when two rows are close.
So G is summed over blocks of 512 columns in float32 and over the blocks in float64, and a pair
whose distance is less than 1 % of its norms (or whose products overflow
or vanish) is measured again from
the difference of its rows, in float64. Clones come out at exactly zero, so that ties are ties.

Cost: one pass over the matrix, plus one for each pair that has to be measured again.
"""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.kernels.sums import BLOCK, CHUNK, TINY, in_blocks

CLOSE = 0.01
"""A pair with D_ij < CLOSE (G_ii + G_jj) is measured again from its difference."""


def squared_distances(
    updates: Float[Tensor, "clients dim"],
) -> Float64[Tensor, "clients clients"]:
    """Return D, symmetric, >= 0, with an exact zero diagonal and a relative error about 1e-8."""
    gram = gram_matrix(updates)
    squared = gram.diagonal()
    sums = squared[:, None] + squared[None, :]
    distances = sums - 2 * gram
    suspect = ~(distances >= CLOSE * sums) | ~sums.isfinite() | (sums < TINY)
    for first in range(len(updates) - 1):
        others = suspect[first, first + 1 :].nonzero().flatten() + first + 1
        if len(others):
            distances[first, others] = _from_differences(updates, first, others)
    upper = distances.triu(1)
    return upper + upper.T


def gram_matrix(updates: Float[Tensor, "clients dim"]) -> Float64[Tensor, "clients clients"]:
    """Return all inner products of rows, summed over blocks in float64."""
    dim = updates.shape[1]
    whole = dim - dim % BLOCK
    rest = updates[:, whole:].to(torch.float64)
    gram = rest @ rest.T
    for start in range(0, whole, CHUNK):
        columns = updates[:, start : min(start + CHUNK, whole)]
        blocks = in_blocks(columns).transpose(0, 1)
        gram += torch.bmm(blocks, blocks.transpose(1, 2)).sum(0, dtype=torch.float64)
    return gram


def _from_differences(
    updates: Float[Tensor, "clients dim"], first: int, others: Tensor
) -> Float64[Tensor, " others"]:
    total = updates.new_zeros(len(others), dtype=torch.float64)
    width = max(BLOCK, CHUNK // len(others))
    for start in range(0, updates.shape[1], width):
        part = updates[:, start : start + width]
        difference = part[others].to(torch.float64) - part[first]
        total += difference.square_().sum(1)
    return total
