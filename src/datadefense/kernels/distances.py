r"""Squared distances between all pairs of updates.

:math:`D_{ij} = \lVert u_i - u_j \rVert^2 = G_{ii} + G_{jj} - 2 G_{ij}` with the Gram matrix G.
Two things make that identity dangerous, and both have picked the wrong client in other people's
Krum: G summed in float32 over millions of columns, and the subtraction when two rows are close.
So G is summed over blocks of 512 columns in float32 and over the blocks in float64; where a pair is
closer than a tenth of its norms, G is made again in float64; and where that would still cancel, the
pair is measured from the difference of its rows. Rows that are the same to the bit are told apart
from rows that are only close: their distance is zero and their ties are ties.

The relative error is at most about 1e-7 (G_ii + G_jj) / D_ij: 1e-8 for rows that point anywhere,
1e-6 at the threshold. Cost: one pass over the matrix; about three more where many rows are close;
one for each pair that has to be measured, of which attackers can make as many as they are pairs.
"""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.kernels.passes import column_parts, last_columns
from datadefense.kernels.sums import BLOCK, CHUNK, in_blocks, norms
from datadefense.spill import release

CLOSE = 0.1
"""Pairs with D_ij below this share of G_ii + G_jj need G in float64."""
CLOSEST = 1e-9
"""Pairs below this share are measured from their difference."""
SCRATCH = 4_000_000
"""Most numbers that the products of a chunk may take."""


def squared_distances(
    updates: Float[Tensor, "clients dim"],
) -> Float64[Tensor, "clients clients"]:
    """Return D, symmetric, >= 0, zero on the diagonal and between clones."""
    scales = torch.ones(len(updates), dtype=torch.float64)
    gram = gram_matrix(updates)
    if not _in_range(gram):
        scales = _power_of_two_scales(updates)
        gram = gram_matrix(updates, scales)
    first = _first_of_clones(updates, gram)
    if bool(_near(gram, scales, first, CLOSE).any()):
        gram = gram_matrix(updates, scales, torch.float64)
    distances = _by_gram(gram, scales)
    near = _near(gram, scales, first, CLOSEST)
    for row in near.any(1).nonzero().flatten().tolist():
        others = near[row].nonzero().flatten()
        distances[row, others] = _measured(updates, row, others)
    distances = distances.triu(1)
    distances = (distances + distances.T)[first][:, first]
    distances[first[:, None] == first[None, :]] = 0
    return distances.clamp(min=0)


def gram_matrix(
    updates: Float[Tensor, "clients dim"],
    scales: Float64[Tensor, " clients"] | None = None,
    dtype: torch.dtype | None = None,
) -> Float64[Tensor, "clients clients"]:
    """Return all inner products of the rows, each times its scale, summed over blocks in float64.

    ``dtype`` is that of the products within a block; default: the matrix's own.
    """
    clients, dim = updates.shape
    width = BLOCK * max(1, min(CHUNK // BLOCK, SCRATCH // clients**2))
    whole = dim - dim % BLOCK
    factor = None if scales is None else scales[:, None].to(updates.dtype)
    rest = last_columns(updates, whole).to(torch.float64)
    if scales is not None:
        rest = rest * scales[:, None]
    gram = rest @ rest.T
    for _, columns in column_parts(updates, whole, width):
        if factor is not None:
            columns = columns * factor  # noqa: PLW2901
        blocks = in_blocks(columns.to(dtype or updates.dtype)).transpose(0, 1)
        gram += torch.bmm(blocks, blocks.transpose(1, 2)).sum(0, dtype=torch.float64)
    return gram


def _in_range(gram: Float64[Tensor, "clients clients"]) -> bool:
    """Whether no product overflowed and no row is so short that products may have vanished."""
    squared = gram.diagonal()
    return bool(gram.isfinite().all()) and bool((squared > 1e-24).all())


def _power_of_two_scales(updates: Float[Tensor, "clients dim"]) -> Float64[Tensor, " clients"]:
    """Return the powers of two that bring the norms near 1; of rows of zeros, 1.

    Within float32's range, so a scaled row has the digits of the row.
    """
    lengths = norms(updates)
    exponents = torch.where(lengths > 0, lengths, 1.0).log2().round().clamp(-120, 120)
    return torch.pow(2.0, -exponents)


def _by_gram(
    gram: Float64[Tensor, "clients clients"], scales: Float64[Tensor, " clients"]
) -> Float64[Tensor, "clients clients"]:
    plain = gram / (scales[:, None] * scales[None, :])
    squared = plain.diagonal()
    return squared[:, None] + squared[None, :] - 2 * plain


def _near(
    gram: Float64[Tensor, "clients clients"],
    scales: Float64[Tensor, " clients"],
    first: Tensor,
    share: float,
) -> Tensor:
    """Mark pairs closer than a share of their norms, each once; clones are left out."""
    squared = gram.diagonal() / scales.square()
    sums = squared[:, None] + squared[None, :]
    close = _by_gram(gram, scales) < share * sums
    alone = first == torch.arange(len(first))
    return (close & alone[:, None] & alone[None, :]).triu(1)


def _first_of_clones(
    updates: Float[Tensor, "clients dim"], gram: Float64[Tensor, "clients clients"]
) -> Tensor:
    """Return for each row the first row that is the same to the bit (mostly itself)."""
    squared = gram.diagonal()
    alike = (squared[:, None] - squared[None, :]).abs() <= 1e-5 * squared[:, None]
    first = torch.arange(len(updates))
    for row in range(1, len(updates)):
        for earlier in alike[row, :row].nonzero().flatten().tolist():
            if int(first[earlier]) == earlier and _same(updates, row, earlier):
                first[row] = earlier
                break
    return first


def _same(updates: Float[Tensor, "clients dim"], row: int, other: int) -> bool:
    same = torch.equal(updates[row], updates[other])
    release(updates)
    return same


def _measured(
    updates: Float[Tensor, "clients dim"], row: int, others: Tensor
) -> Float64[Tensor, " others"]:
    total = updates.new_zeros(len(others), dtype=torch.float64)
    width = max(BLOCK, CHUNK // len(others))
    for _, columns in column_parts(updates, updates.shape[1], width):
        difference = columns[others].to(torch.float64) - columns[row]
        total += difference.square_().sum(1)
    return total
