"""Sums along long rows: norms, dot products and weighted sums of updates.

A float32 sum over ten million coordinates loses its last digits. Here the columns are cut into
blocks of 512; a block is summed in float32 and the blocks in float64. That takes no longer and has
a relative error of about 1e-9 (up to 1e-6 where all rounding errors have the same sign, as in
constant rows).
"""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.kernels.passes import last_columns, whole_columns, whole_rows
from datadefense.kernels.spill import release
from datadefense.kernels.workers import sum_over_parts

BLOCK = 512
"""Columns whose products are summed in the matrix's own precision."""
CHUNK = 65_536
"""Columns taken at a time by kernels that need a scratch copy: a multiple of BLOCK."""
TINY = 1e-24
"""A squared norm below this may have lost terms to float32 underflow: sum it again."""


def in_blocks(columns: Float[Tensor, "clients width"]) -> Float[Tensor, "clients blocks block"]:
    """View the columns, a multiple of BLOCK of them, as blocks."""
    clients, width = columns.shape
    return columns.reshape(clients, width // BLOCK, BLOCK)


def weighted_sum(
    weights: Float[Tensor, " clients"], updates: Float[Tensor, "clients dim"]
) -> Float[Tensor, " dim"]:
    """Return sum_j weights_j updates_j: one pass over the matrix."""
    factors = weights.to(updates.dtype)
    return _joined([factors @ columns for _, columns in whole_columns(updates)])


def add_weighted(
    base: Float[Tensor, " dim"],
    weights: Float[Tensor, " clients"],
    updates: Float[Tensor, "clients dim"],
) -> Float[Tensor, " dim"]:
    """Return base + sum_j weights_j updates_j (Eq. 2) in one pass over the matrix."""
    factors = weights.to(updates.dtype)
    return _joined(
        [torch.addmv(base[part], columns.T, factors) for part, columns in whole_columns(updates)]
    )


def squared_norms(updates: Float[Tensor, "clients dim"]) -> Float64[Tensor, " clients"]:
    """Return the squared l2 norm of each row, in float64, finite for every finite row."""
    dim = updates.shape[1]
    whole = dim - dim % BLOCK
    rest = last_columns(updates, whole).to(torch.float64).square().sum(1)
    blocks = _joined(
        [
            torch.linalg.vector_norm(in_blocks(updates[rows, :whole]), dim=2)
            for rows in whole_rows(updates)
        ]
    )
    total: Tensor = blocks.to(torch.float64).square().sum(1) + rest
    for row in _outside_range(total):
        total[row] = _squared_norm_exact(updates[row])
        release(updates)
    return total


def norms(updates: Float[Tensor, "clients dim"]) -> Float64[Tensor, " clients"]:
    """Return the l2 norm of each row, in float64."""
    return squared_norms(updates).sqrt()


def dots(
    updates: Float[Tensor, "clients dim"], vector: Float[Tensor, " dim"]
) -> Float64[Tensor, " clients"]:
    """Return the dot product of each row with ``vector``, in float64."""
    dim = updates.shape[1]
    whole = dim - dim % BLOCK
    rest = last_columns(updates, whole)
    total = rest.to(torch.float64) @ vector[whole:].to(torch.float64)

    def products(part: slice, columns: Tensor) -> Tensor:
        rows = in_blocks(columns).transpose(0, 1)
        column = vector[part].view(-1, BLOCK, 1)
        return torch.bmm(rows, column).squeeze(2).sum(0, dtype=torch.float64)

    sum_over_parts(total, updates, whole, CHUNK, products)
    for row in (~total.isfinite()).nonzero().flatten().tolist():
        total[row] = updates[row].to(torch.float64) @ vector.to(torch.float64)
        release(updates)
    return total


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _outside_range(squared: Float64[Tensor, " clients"]) -> list[int]:
    """Return the rows whose float32 squares overflowed, or may have become 0 (underflow)."""
    return ((~squared.isfinite()) | (squared < TINY)).nonzero().flatten().tolist()


def _squared_norm_exact(row: Float[Tensor, " dim"]) -> Tensor:
    parts = [part.to(torch.float64).square().sum() for part in torch.split(row, CHUNK)]
    return torch.stack(parts).sum() if parts else row.new_zeros((), dtype=torch.float64)
