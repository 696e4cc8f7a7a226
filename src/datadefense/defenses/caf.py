"""CAF: lower the weight of who spreads most along the main direction, and take the calmest mean."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float64
from torch import Tensor

from datadefense.core.defense import BOUNDED_MEAN, Combined, Promise, Rule, too_few
from datadefense.core.reasons import Reason
from datadefense.core.round import Round
from datadefense.core.settings import check_int, setting
from datadefense.kernels.distances import squared_distances

NO_SPREAD = 1e-15
"""A top eigenvalue up to this share of the greatest squared distance is rounding."""
FARTHEST = 1e300
"""What a squared distance counts as that is beyond float64's range."""
LITTLE = 0.5
"""Share of the greatest weight below which a client is told why."""


class Direction(NamedTuple):
    """The variance along the main direction, and each client's squared projection on it."""

    variance: float
    projections: Float64[Tensor, " clients"]


def main_direction(
    pairs: Float64[Tensor, "clients clients"], weights: Float64[Tensor, " clients"]
) -> Direction:
    r"""Return top eigenvalue and squared projections of the weighted covariance; weights sum to 1.

    From the pairwise squared distances D: the inner products of rows less their weighted mean are
    :math:`K_{ij} = -\frac12 (D_{ij} - (Dw)_i - (Dw)_j + w^\top D w)`, and with the top eigenpair
    :math:`\lambda, q` of :math:`\sqrt{w_i w_j} K_{ij}` the projection of row j is
    :math:`(K (\sqrt w\, q))_j / \sqrt\lambda`.
    """
    size = float(pairs.max())
    if size == 0:
        return Direction(0.0, torch.zeros_like(weights))
    scaled = pairs / size
    to_all = scaled @ weights
    products = -0.5 * (scaled - to_all[:, None] - to_all[None, :] + weights @ to_all)
    roots = weights.sqrt()
    values, vectors = torch.linalg.eigh(roots[:, None] * products * roots[None, :])
    top = float(values[-1])
    if top <= NO_SPREAD:
        return Direction(0.0, torch.zeros_like(weights))
    projections = (products @ (roots * vectors[:, -1])).square() / top
    return Direction(top * size, projections * size)


def calmest_weights(
    pairs: Float64[Tensor, "clients clients"], num_malicious: int
) -> Float64[Tensor, " clients"]:
    """Return the weights, sum 1, of the mean with the least variance along its main direction.

    The client that is farthest along that direction loses all its weight in each step, so there are
    at most n steps; who has none is no longer looked at.
    """
    clients = len(pairs)
    counts = torch.ones(clients, dtype=torch.float64)
    best, least = counts / clients, torch.inf
    while float(counts.sum()) > clients - 2 * num_malicious:
        live = counts.nonzero().flatten()
        weights = counts[live] / counts.sum()
        found = main_direction(pairs[live][:, live], weights)
        if found.variance < least:
            best, least = counts / counts.sum(), found.variance
        if found.variance == 0:
            break
        counts[live] *= (1 - found.projections / found.projections.max()).clamp(min=0)
    return best


@dataclass(frozen=True, slots=True)
class Caf(Rule):
    r"""Take the weighted mean with the least top variance that a filter passes on its way.

    All start with weight :math:`c_j = 1`. While :math:`\sum_j c_j > n - 2f`: with the weighted mean
    m and the top eigenvector v of the weighted covariance,

    .. math:: \tau_j = \langle u_j - m, v \rangle^2, \qquad
              c_j \leftarrow c_j \Big(1 - \frac{\tau_j}{\max_{i : c_i > 0} \tau_i}\Big)

    and the result is the m whose top eigenvalue was least. No bound on the variance of honest
    updates need be known. Needs n >= 2f + 1; with fewer clients the model stays. With f = 0 it is
    the mean. The updates are read once, for their pairwise distances.

    Reference: Allouah, Guerraoui, Stephan, *Towards Trustworthy Federated Learning with Untrusted
    Participants*, 2025 (covariance bound-agnostic filter).

    Differs from ByzFL's, which decomposes in dim dimensions.
    """

    num_malicious: int = setting(1, "assumed number of attackers f in a round")

    name: ClassVar[str] = "caf"
    promises: ClassVar[Promise] = BOUNDED_MEAN

    def __post_init__(self) -> None:
        check_int("num_malicious", self.num_malicious, 0)

    def shortage(self, num_clients: int) -> str | None:
        """Honest clients must be the majority: n >= 2f + 1."""
        return too_few(self.name, num_clients, self.num_malicious, 2, 1)

    def combine(self, round: Round) -> Combined:
        """Return the weights of the calmest mean."""
        pairs = torch.nan_to_num(squared_distances(round.updates), FARTHEST, FARTHEST)
        weights = calmest_weights(pairs, self.num_malicious)
        relative = weights / weights.max()
        return Combined(
            weights=weights.to(round.updates.dtype),
            evidence={"filter_weight": relative},
            report={"weighed": int((weights > 0).sum())},
            reasons=[
                Reason("filter_weight", share, 1.0) if share < LITTLE else None
                for share in relative.tolist()
            ],
        )
