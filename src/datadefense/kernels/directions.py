"""Angles between updates, or between the models that they lead to, without cancellation.

The cosine of two models of a warm federation is 1 - 1e-6 or closer to 1, where a product that is
summed in float32 is noise. Here products are of float64 numbers and so is every sum: the error of a
cosine is about 1e-15, for updates of any length, and of models without a matrix of models.
"""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.kernels.sums import BLOCK, CHUNK
from datadefense.kernels.workers import sum_over_parts

SAME_DIRECTION = 1e-12
"""Cosine distances up to this are rounding: they count as 0."""


def exact_gram(
    updates: Float[Tensor, "clients dim"], origin: Float[Tensor, " dim"] | None = None
) -> Float64[Tensor, "clients clients"]:
    """Return all inner products of the rows, or of origin + rows: one pass, in float64."""
    clients, dim = updates.shape
    gram = updates.new_zeros(clients, clients, dtype=torch.float64)

    def products(part: slice, columns: Tensor) -> Tensor:
        wide = columns.to(torch.float64)
        if origin is not None:
            wide = wide + origin[part].to(torch.float64)
        return wide @ wide.T

    sum_over_parts(gram, updates, dim, _width(clients), products)
    return gram


def exact_dots(
    updates: Float[Tensor, "clients dim"], vector: Float[Tensor, " dim"]
) -> Float64[Tensor, " clients"]:
    """Return the inner product of each row with a vector: one pass, in float64."""
    clients, dim = updates.shape
    total = updates.new_zeros(clients, dtype=torch.float64)

    def products(part: slice, columns: Tensor) -> Tensor:
        return columns.to(torch.float64) @ vector[part].to(torch.float64)

    sum_over_parts(total, updates, dim, _width(clients), products)
    return total


def cosine_distances(
    gram: Float64[Tensor, "clients clients"],
) -> Float64[Tensor, "clients clients"]:
    """Return 1 - cos of all pairs, in [0, 2], 0 on the diagonal; a row of zeros is at 1 from all.

    >>> cosine_distances(torch.tensor([[1.0, 2.0], [2.0, 16.0]], dtype=torch.float64))[0, 1]
    tensor(0.5000, dtype=torch.float64)
    """
    lengths = gram.diagonal().sqrt()
    apart = 1 - gram / lengths[:, None] / lengths[None, :]
    apart = torch.nan_to_num(apart, nan=1.0, posinf=1.0, neginf=1.0).clamp(0, 2)
    apart[apart <= SAME_DIRECTION] = 0
    apart = apart.triu(1)
    return apart + apart.T


def distances_from(
    updates: Float[Tensor, "clients dim"], vector: Float[Tensor, " dim"]
) -> Float64[Tensor, " clients"]:
    """Return the distance of each row from a vector: one pass, in float64."""
    clients, dim = updates.shape
    total = updates.new_zeros(clients, dtype=torch.float64)

    def squares(part: slice, columns: Tensor) -> Tensor:
        gap = columns.to(torch.float64) - vector[part].to(torch.float64)
        return gap.square_().sum(1)

    sum_over_parts(total, updates, dim, _width(clients), squares)
    return total.sqrt()


def absolute_distances(
    updates: Float[Tensor, "clients dim"],
) -> Float64[Tensor, "clients clients"]:
    """Return the l1 distances of all pairs: one pass, n^2 dim steps, in float64."""
    clients, dim = updates.shape
    total = updates.new_zeros(clients, clients, dtype=torch.float64)

    def gaps(_: slice, columns: Tensor) -> Tensor:
        wide = columns.to(torch.float64)
        return torch.stack([(wide - row).abs_().sum(1) for row in wide])

    sum_over_parts(total, updates, dim, _width(clients), gaps)
    upper = total.triu(1)
    return upper + upper.T


def _width(clients: int) -> int:
    return max(BLOCK, CHUNK // clients)
