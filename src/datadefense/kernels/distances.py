r"""Squared distances between all pairs of updates.

:math:`D_{ij} = \lVert u_i - u_j \rVert^2 = G_{ii} + G_{jj} - 2 G_{ij}` with the Gram matrix G.
That identity loses digits in two ways, and both have made other implementations of Krum choose the
wrong client: G summed in float32 over millions of columns, and the subtraction when two rows are
close. So here:

- G is summed in float32 within blocks of 512 columns, and in float64 over the blocks.
- If a pair is closer than a tenth of its norms, G is computed again in float64.
- If that would still cancel, the rows that are close together (a *cluster*) are measured from the
  first of them: G of their differences does not cancel, or shows which are closer still.
- Rows that are equal to the bit are found by a digest; their distance is exactly 0.

The relative error is at most about 1e-7 (G_ii + G_jj) / D_ij: 1e-8 for rows in random directions,
1e-6 at the threshold. Cost: one pass over the matrix; about three more where many rows are close;
and one over the rows of each cluster, however many pairs it has. A cluster within a cluster costs
another pass; the range of float32 allows about twenty levels.
"""

from hashlib import blake2b

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from datadefense.kernels.passes import last_columns
from datadefense.kernels.spill import release
from datadefense.kernels.sums import BLOCK, CHUNK, in_blocks, norms
from datadefense.kernels.workers import sum_over_parts

CLOSE = 0.1
"""Pairs with D_ij below this share of G_ii + G_jj need G in float64."""
CLOSEST = 1e-9
"""Pairs below this share are measured from differences."""
ALIKE = 1e-4
"""Only pairs below this share can be clones: the error of G in float32 is smaller."""
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
    first = _first_of_clones(updates, gram, scales)
    if bool(_near(gram, scales, first, CLOSE).any()):
        gram = gram_matrix(updates, scales, torch.float64)
    distances = _by_gram(gram, scales)
    _measure_clusters(updates, distances, _near(gram, scales, first, CLOSEST))
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

    def products(_: slice, columns: Tensor) -> Tensor:
        scaled = columns if factor is None else columns * factor
        blocks = in_blocks(scaled.to(dtype or updates.dtype)).transpose(0, 1)
        return torch.bmm(blocks, blocks.transpose(1, 2)).sum(0, dtype=torch.float64)

    sum_over_parts(gram, updates, whole, width, products)
    return gram


def _in_range(gram: Float64[Tensor, "clients clients"]) -> bool:
    """Say whether no product overflowed and no row is so short that products may underflow."""
    squared = gram.diagonal()
    return bool(gram.isfinite().all()) and bool((squared > 1e-24).all())


def _power_of_two_scales(updates: Float[Tensor, "clients dim"]) -> Float64[Tensor, " clients"]:
    """Return the powers of two that bring the norms near 1; of rows of zeros, 1.

    They are within float32's range, so that scaling loses no digits.
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
) -> Bool[Tensor, "clients clients"]:
    """Mark pairs closer than a share of their norms, each once; clones are left out."""
    squared = gram.diagonal() / scales.square()
    sums = squared[:, None] + squared[None, :]
    close = _by_gram(gram, scales) < share * sums
    alone = first == torch.arange(len(first))
    return (close & alone[:, None] & alone[None, :]).triu(1)


def _first_of_clones(
    updates: Float[Tensor, "clients dim"],
    gram: Float64[Tensor, "clients clients"],
    scales: Float64[Tensor, " clients"],
) -> Tensor:
    """Return for each row the first row that is the same to the bit (mostly itself).

    Only rows that G cannot tell from another are read, each once, and hashed. (0.0 and -0.0 are
    the same number and get the same digest.)
    """
    first = torch.arange(len(updates))
    alike = _near(gram, scales, first, ALIKE)
    seen: dict[bytes, int] = {}
    for row in (alike.any(0) | alike.any(1)).nonzero().flatten().tolist():
        digest = blake2b((updates[row].detach() + 0.0).numpy().data).digest()
        release(updates)
        first[row] = seen.setdefault(digest, row)
    return first


def _measure_clusters(
    updates: Float[Tensor, "clients dim"],
    distances: Float64[Tensor, "clients clients"],
    near: Bool[Tensor, "clients clients"],
) -> None:
    """Write the distances within each cluster of rows near one another, from differences.

    The first row of a cluster is subtracted from all of it. Pairs for which even that cancels are
    the clusters of the next level; the first row is in none of them, so this ends.
    """
    clusters = _clusters(near)
    while clusters:
        left: list[Tensor] = []
        for cluster in clusters:
            gram = gram_of_differences(updates, cluster)
            ones = torch.ones(len(cluster), dtype=torch.float64)
            distances[cluster[:, None], cluster[None, :]] = _by_gram(gram, ones)
            still = _near(gram, ones, torch.arange(len(cluster)), CLOSEST)
            left += [cluster[rows] for rows in _clusters(still)]
        clusters = left


def _clusters(near: Bool[Tensor, "clients clients"]) -> list[Tensor]:
    """Return the sets of two or more rows that are connected by near pairs."""
    linked = near | near.T
    free = linked.any(1)
    clusters: list[Tensor] = []
    for row in range(len(near)):
        if not bool(free[row]):
            continue
        cluster = linked[row].clone()
        grown = linked[cluster].any(0) | cluster
        while not torch.equal(grown, cluster):
            cluster, grown = grown, linked[grown].any(0) | grown
        free &= ~cluster
        clusters.append(cluster.nonzero().flatten())
    return clusters


def gram_of_differences(
    updates: Float[Tensor, "clients dim"], rows: Tensor, origin: int = 0
) -> Float64[Tensor, "rows rows"]:
    """Return all inner products of u_i - u_o in float64, for i in ``rows`` and o = rows[origin]."""
    count = len(rows)
    gram = updates.new_zeros(count, count, dtype=torch.float64)
    width = max(BLOCK, CHUNK // count)

    def products(_: slice, columns: Tensor) -> Tensor:
        chosen = columns[rows].to(torch.float64)
        chosen = chosen - chosen[origin]
        return chosen @ chosen.T

    sum_over_parts(gram, updates, updates.shape[1], width, products)
    return gram
