"""Rows made of rows: a matrix of updates scaled row by row, or mixed by another matrix."""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.kernels.passes import whole_columns


def clip_factors(lengths: Float64[Tensor, " clients"], bound: float) -> Float64[Tensor, " clients"]:
    r"""Return the factors :math:`\min(1, b / \lVert u_j \rVert)` that bring norms to a bound."""
    return torch.where(lengths > bound, bound / lengths, 1.0)


def scale_rows(
    factors: Float64[Tensor, " clients"], updates: Float[Tensor, "clients dim"]
) -> Float[Tensor, "clients dim"]:
    """Return each row times its factor; the matrix itself where all factors are 1."""
    if bool((factors == 1).all()):
        return updates
    return _finite(updates * factors.to(updates.dtype)[:, None])


def mix_rows(
    matrix: Float64[Tensor, "rows clients"], updates: Float[Tensor, "clients dim"]
) -> Float[Tensor, "rows dim"]:
    """Return ``matrix @ updates`` in the dtype of the updates, finite for every mean of rows."""
    factors = matrix.to(updates.dtype)
    parts = [factors @ columns for _, columns in whole_columns(updates)]
    return _finite(parts[0] if len(parts) == 1 else torch.cat(parts, dim=1))


def _finite(rows: Float[Tensor, "rows dim"]) -> Float[Tensor, "rows dim"]:
    """Bound the rows, in place: a mean of the greatest numbers may round to infinity."""
    largest = torch.finfo(rows.dtype).max
    return rows.clamp_(-largest, largest)
