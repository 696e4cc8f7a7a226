"""Sums along long rows: norms, dot products and weighted sums of updates.

A float32 sum over ten million coordinates loses its last digits. Here the columns are cut into
blocks of 512; a block is summed in float32 and the blocks in float64, which costs nothing and
leaves an error of about 1e-9 (on rows whose rounding errors all have one sign, such as constant
ones, up to 1e-6).
"""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

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
    return weights.to(updates.dtype) @ updates


def add_weighted(
    base: Float[Tensor, " dim"],
    weights: Float[Tensor, " clients"],
    updates: Float[Tensor, "clients dim"],
) -> Float[Tensor, " dim"]:
    """Return base + sum_j weights_j updates_j (Eq. 2), the addition within the one pass."""
    return torch.addmv(base, updates.T, weights.to(updates.dtype))


def squared_norms(updates: Float[Tensor, "clients dim"]) -> Float64[Tensor, " clients"]:
    """Return the squared l2 norm of each row, in float64, finite for every finite row."""
    dim = updates.shape[1]
    whole = dim - dim % BLOCK
    blocks = torch.linalg.vector_norm(in_blocks(updates[:, :whole]), dim=2)
    total: Tensor = blocks.to(torch.float64).square().sum(1)
    total += updates[:, whole:].to(torch.float64).square().sum(1)
    for row in _outside_range(total):
        total[row] = _squared_norm_exact(updates[row])
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
    total = updates[:, whole:].to(torch.float64) @ vector[whole:].to(torch.float64)
    for start in range(0, whole, CHUNK):
        stop = min(start + CHUNK, whole)
        rows = in_blocks(updates[:, start:stop]).transpose(0, 1)
        column = vector[start:stop].view(-1, BLOCK, 1)
        total += torch.bmm(rows, column).squeeze(2).sum(0, dtype=torch.float64)
    for row in (~total.isfinite()).nonzero().flatten().tolist():
        total[row] = updates[row].to(torch.float64) @ vector.to(torch.float64)
    return total


def squared_distances_to(
    updates: Float[Tensor, "clients dim"], point: Float[Tensor, " dim"]
) -> Float64[Tensor, " clients"]:
    """Return the squared distance of each row from ``point``, from differences, in float64."""
    total = updates.new_zeros(len(updates), dtype=torch.float64)
    for start in range(0, updates.shape[1], CHUNK):
        part = slice(start, start + CHUNK)
        total += squared_norms(updates[:, part] - point[part])
    for row in (~total.isfinite()).nonzero().flatten().tolist():
        total[row] = (updates[row].to(torch.float64) - point.to(torch.float64)).square().sum()
    return total


def _outside_range(squared: Float64[Tensor, " clients"]) -> list[int]:
    """Rows whose float32 squares overflowed, or are so small that they may have vanished."""
    return ((~squared.isfinite()) | (squared < TINY)).nonzero().flatten().tolist()


def _squared_norm_exact(row: Float[Tensor, " dim"]) -> Tensor:
    parts = [part.to(torch.float64).square().sum() for part in torch.split(row, CHUNK)]
    return torch.stack(parts).sum() if parts else row.new_zeros((), dtype=torch.float64)
