"""RFA: the geometric median of the updates, by smoothed Weiszfeld iterations."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.defenses.base import Combined, Promise, Rule
from datadefense.kernels.distances import squared_distances
from datadefense.kernels.sums import squared_distances_to, weighted_sum
from datadefense.round import Round
from datadefense.settings import number, setting, whole

WIDEST_SPREAD = 1e6
"""Up to this ratio of greatest to median squared distance, distances from the median are taken
from the pairwise ones; beyond it that difference would cancel, and they are measured."""
TIE = 1e-6
"""Sums of distances that differ by no greater share count as the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Weiszfeld:
    """Where it ended: v = weights @ updates, the distances from it (at least nu), and how."""

    weights: Float64[Tensor, " clients"]
    distances: Float64[Tensor, " clients"]
    iterations: int
    converged: bool


def start_near_medoid(
    shares: Float64[Tensor, " clients"], pairs: Float64[Tensor, "clients clients"]
) -> Float64[Tensor, " clients"]:
    r"""Return weights to start from: those of an iteration at the medoid.

    The medoid is the update with the least :math:`\sum_i \alpha_i \lVert u_i - u_j \rVert`, an
    honest place while attackers have less than half; the mean, from which the paper starts, can be
    anywhere. Distances below their median count as the median, so that the medoid does not take
    all. Of updates that are as good, to a part in a million, the first is taken, not the one that
    a processor's rounding prefers.
    """
    lengths = pairs.sqrt()
    sums = lengths @ shares
    from_medoid = lengths[int((~(sums > sums.min() * (1 + TIE))).nonzero()[0])]
    beta = shares / from_medoid.clamp(min=max(float(from_medoid.median()), 1e-300))
    return beta / beta.sum()


def weiszfeld(
    shares: Float64[Tensor, " clients"],
    start: Float64[Tensor, " clients"],
    distances_from: Callable[[Tensor], Tensor],
    settings: "Rfa",
) -> Weiszfeld:
    r"""Minimise :math:`\sum_j \alpha_j \lVert u_j - v \rVert` from v = start @ updates.

    .. math:: \beta_j = \frac{\alpha_j}{\max(\nu, \lVert u_j - v \rVert)}, \qquad
              v \leftarrow \sum_j \beta_j u_j / \sum_j \beta_j

    until no distance changes by more than the tolerance of itself. (The objective, on which others
    stop, is blind when one attacker is far away: its distance is nearly all of the sum.)
    ``distances_from(weights)`` gives :math:`\lVert u_j - v \rVert` for v = weights @ updates;
    nothing else is needed of the updates, so an iteration can cost n^2 instead of n x dim.
    """
    distances = distances_from(start).clamp(min=settings.smoothing)
    for iteration in range(settings.max_iterations):
        beta = shares / distances
        weights = beta / beta.sum()
        before, distances = distances, distances_from(weights).clamp(min=settings.smoothing)
        if bool(((distances - before).abs() <= settings.tolerance * distances).all()):
            return Weiszfeld(weights, distances, iteration + 1, True)
    return Weiszfeld(weights, distances, settings.max_iterations, False)


def distances_by_pairs(
    pairs: Float64[Tensor, "clients clients"],
) -> Callable[[Tensor], Tensor]:
    r"""Distances from v = weights @ updates by the pairwise squared distances D alone.

    .. math:: \lVert u_j - v \rVert^2 = (D w)_j - \tfrac12 w^\top D w, \qquad \sum_j w_j = 1
    """

    def distances_from(weights: Tensor) -> Tensor:
        to_all = pairs @ weights
        return (to_all - 0.5 * (weights @ to_all)).clamp(min=0).sqrt()

    return distances_from


def distances_by_measure(updates: Float[Tensor, "clients dim"]) -> Callable[[Tensor], Tensor]:
    """Distances from v = weights @ updates, measured: two passes over the matrix."""

    def distances_from(weights: Tensor) -> Tensor:
        return squared_distances_to(updates, weighted_sum(weights, updates)).sqrt()

    return distances_from


@dataclass(frozen=True, slots=True)
class Rfa(Rule):
    r"""Take the geometric median of the updates, weighted by examples.

    .. math:: v = \arg\min_v \sum_j \frac{n_j}{n} \lVert u_j - v \rVert

    by smoothed Weiszfeld iterations (see `weiszfeld`), to convergence by default. Any number of
    clients; an attacker's pull is bounded while the claimed examples of all attackers are less
    than half.

    Reference: Pillutla, Kakade, Harchaoui, *Robust Aggregation for Federated Learning*, IEEE TSP
    2022, algorithm 2. Differs: they start at the mean and stop after a few iterations
    (``max_iterations=3``), which from the mean of a round with one update of 1e30 does not come
    back; we start near the medoid and go on.
    """

    max_iterations: int = setting(1000, "most Weiszfeld iterations")
    tolerance: float = setting(1e-7, "stop when no distance changes by a greater share")
    smoothing: float = setting(1e-6, "least distance nu that a weight is divided by")

    name: ClassVar[str] = "rfa"
    promises: ClassVar[Promise] = (
        Promise.SYMMETRIC
        | Promise.WEIGHTED
        | Promise.SUMS_TO_ONE
        | Promise.UNANIMOUS
        | Promise.TRANSLATES
        | Promise.BOUNDED
    )

    def __post_init__(self) -> None:
        whole("max_iterations", self.max_iterations, 1)
        number("tolerance", self.tolerance, minimum=0)
        number("smoothing", self.smoothing, above=0)

    def combine(self, round: Round) -> Combined:
        """Return the weights of the geometric median."""
        pairs = squared_distances(round.updates)
        spread = float(pairs.max()) <= WIDEST_SPREAD * float(pairs.median())
        counts = round.num_examples.double()
        shares = counts / counts.sum()
        measure = distances_by_pairs(pairs) if spread else distances_by_measure(round.updates)
        found = weiszfeld(shares, start_near_medoid(shares, pairs), measure, self)
        return Combined(
            weights=found.weights.to(round.updates.dtype),
            evidence={"distance": found.distances},
            report={"iterations": found.iterations, "converged": found.converged},
        )
