"""The geometric median by Weiszfeld's iterations, none of which reads the matrix of updates.

Every iterate is v = weights @ updates, so its distances follow from the n x n inner products of the
updates, or from their pairwise distances, in n^2 steps. So what attackers can buy is n^2 a time,
never a pass over n x dim numbers.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from jaxtyping import Float64
from torch import Tensor

PLAIN = 100
"""Iterations before steps are lengthened. Honest rounds need about ten."""
LONGEST = 2.0**40
"""The most that a step is lengthened."""
TIE = 1e-6
"""Sums of distances, and radii, that differ by no greater share count as the same."""
HALF = 0.5 - 1e-9
"""Half of the examples, whatever the order in which shares are summed."""
AT_ONCE = 4_000_000
"""Most distances that are sorted at once."""


class Parabolas(NamedTuple):
    r"""Squared distances from a point on a line: :math:`c_j + b_j t + a t^2` at t."""

    c: Float64[Tensor, " clients"]
    b: Float64[Tensor, " clients"]
    a: float

    def squared(self, t: float) -> Float64[Tensor, " clients"]:
        """Return the squared distances at ``t``, >= 0."""
        return (self.c + self.b * t + self.a * t * t).clamp(min=0)


class Measure(Protocol):
    """What is known of the updates: distances from any v = weights @ updates."""

    def along(
        self, weights: Float64[Tensor, " clients"], step: Float64[Tensor, " clients"]
    ) -> Parabolas:
        """Return the squared distances from (weights + t step) @ updates; a step sums to 0."""

    def distances(self, weights: Float64[Tensor, " clients"]) -> Float64[Tensor, " clients"]:
        """Return the distances from weights @ updates."""


@dataclass(frozen=True, slots=True, eq=False)
class ByPairs:
    r"""By the pairwise squared distances D alone; good while no update is far out.

    .. math:: \lVert u_j - v \rVert^2 = (D w)_j - \tfrac12 w^\top D w, \qquad \sum_j w_j = 1
    """

    pairs: Float64[Tensor, "clients clients"]

    def distances(self, weights: Float64[Tensor, " clients"]) -> Float64[Tensor, " clients"]:
        """Return the distances from weights @ updates."""
        to_all = self.pairs @ weights
        return (to_all - 0.5 * (weights @ to_all)).clamp(min=0).sqrt()

    def along(
        self, weights: Float64[Tensor, " clients"], step: Float64[Tensor, " clients"]
    ) -> Parabolas:
        """Return the squared distances on a line."""
        here, there = self.pairs @ weights, self.pairs @ step
        return Parabolas(
            here - 0.5 * (weights @ here), there - weights @ there, float(-0.5 * (step @ there))
        )


@dataclass(frozen=True, slots=True, eq=False)
class ByProducts:
    r"""By the inner products K of the updates less one of them, which is near the middle.

    .. math:: \lVert u_j - v \rVert^2 = K_{jj} - 2 (K w)_j + w^\top K w, \qquad \sum_j w_j = 1

    An update that is far out has a weight as small as it is far, and a product with it is rounded
    by no more than a share of its own size: all terms of the sum are as large as the near updates.
    """

    products: Float64[Tensor, "clients clients"]

    def distances(self, weights: Float64[Tensor, " clients"]) -> Float64[Tensor, " clients"]:
        """Return the distances from weights @ updates."""
        return self.along(weights, torch.zeros_like(weights)).squared(0.0).sqrt()

    def along(
        self, weights: Float64[Tensor, " clients"], step: Float64[Tensor, " clients"]
    ) -> Parabolas:
        """Return the squared distances on a line."""
        here, there = self.products @ weights, self.products @ step
        return Parabolas(
            self.products.diagonal() - 2 * here + weights @ here,
            2 * (weights @ there) - 2 * there,
            float(step @ there),
        )


@dataclass(frozen=True, slots=True)
class Stop:
    """When to stop: after so many iterations, or when no distance changes by a greater share.

    ``smoothing`` is the least distance nu that a weight is divided by.
    """

    max_iterations: int
    tolerance: float
    smoothing: float


@dataclass(frozen=True, slots=True, eq=False)
class Weiszfeld:
    """Where it ended: v = weights @ updates, the distances from it (at least nu), and how."""

    weights: Float64[Tensor, " clients"]
    distances: Float64[Tensor, " clients"]
    iterations: int
    converged: bool


class Middle(NamedTuple):
    """An update, and the radius of the ball around it that has half of the examples."""

    row: int
    radius: float


def middle_of(
    shares: Float64[Tensor, " clients"], pairs: Float64[Tensor, "clients clients"]
) -> Middle:
    """Return the update with the smallest such ball; of those as good, the first.

    While attackers have less than half of the examples, the ball is no larger than one around an
    honest update, and an honest update is in it: so neither the row nor the radius is theirs to
    carry away, whatever they send and however many they are.
    """
    radii = []
    for rows in torch.split(pairs, max(1, AT_ONCE // len(pairs))):
        nearest = rows.sort(dim=1)
        reached = shares[nearest.indices].cumsum(1) >= HALF
        radii.append(nearest.values.gather(1, reached.to(torch.uint8).argmax(1, keepdim=True)))
    radius = torch.cat(radii).flatten().sqrt()
    row = int((~(radius > radius.min() * (1 + TIE))).nonzero()[0])
    return Middle(row, float(radius[row]))


def start_near_medoid(
    shares: Float64[Tensor, " clients"], pairs: Float64[Tensor, "clients clients"]
) -> Float64[Tensor, " clients"]:
    r"""Return weights to start from: those of an iteration at the medoid.

    The medoid is the update with the least :math:`\sum_i \alpha_i \lVert u_i - u_j \rVert`; the
    mean, from which the paper starts, can be anywhere. Distances below their median count as the
    median, so that the medoid does not take all. Of updates that are as good, to a part in a
    million, the first is taken, not the one that a processor's rounding prefers.
    """
    lengths = pairs.sqrt()
    sums = lengths @ shares
    from_medoid = lengths[int((~(sums > sums.min() * (1 + TIE))).nonzero()[0])]
    return _weights_at(shares, from_medoid, float(from_medoid.median()))


def start_near_middle(
    shares: Float64[Tensor, " clients"], pairs: Float64[Tensor, "clients clients"], middle: Middle
) -> Float64[Tensor, " clients"]:
    """Return weights to start from where updates are so far out that no sum tells the near apart.

    Those of an iteration at the middle; distances within its ball count as the radius.
    """
    return _weights_at(shares, pairs[middle.row].sqrt(), middle.radius)


def _weights_at(
    shares: Float64[Tensor, " clients"], distances: Float64[Tensor, " clients"], least: float
) -> Float64[Tensor, " clients"]:
    beta = shares / distances.clamp(min=max(least, 1e-300))
    return beta / beta.sum()


def weiszfeld(
    shares: Float64[Tensor, " clients"],
    start: Float64[Tensor, " clients"],
    measure: Measure,
    stop: Stop,
) -> Weiszfeld:
    r"""Minimise :math:`\sum_j \alpha_j \lVert u_j - v \rVert` from v = start @ updates.

    .. math:: \beta_j = \frac{\alpha_j}{\max(\nu, \lVert u_j - v \rVert)}, \qquad
              v \leftarrow \sum_j \beta_j u_j / \sum_j \beta_j

    until no distance changes by more than the tolerance of itself. (The objective, on which others
    stop, is blind when one attacker is far away: its distance is nearly all of the sum.)

    Where an update is almost the median, the iterations creep towards it for ever. So after the
    first hundred each step is lengthened (see `reach`); the weights returned are always those of a
    plain step.
    """
    point = start
    distances = measure.distances(point).clamp(min=stop.smoothing)
    for iteration in range(stop.max_iterations):
        beta = shares / distances
        weights = beta / beta.sum()
        before, distances = distances, measure.distances(weights).clamp(min=stop.smoothing)
        if bool(((distances - before).abs() <= stop.tolerance * distances).all()):
            return Weiszfeld(weights, distances, iteration + 1, True)
        last = iteration + 1 == stop.max_iterations
        longer = 1.0 if iteration < PLAIN or last else reach(shares, point, weights, measure, stop)
        if longer > 1:
            point = point + longer * (weights - point)
            distances = measure.distances(point).clamp(min=stop.smoothing)
        else:
            point = weights
    return Weiszfeld(weights, distances, stop.max_iterations, False)


def reach(
    shares: Float64[Tensor, " clients"],
    before: Float64[Tensor, " clients"],
    after: Float64[Tensor, " clients"],
    measure: Measure,
    stop: Stop,
) -> float:
    r"""Return the greatest power of two t for which before + t (after - before) still descends.

    The slope of :math:`\sum_j \alpha_j \lVert u_j - v \rVert` along the line grows with t, the sum
    being convex, and is told from far attackers' distances without rounding them: in it, each is a
    unit vector.
    """
    line = measure.along(before, after - before)
    t = 1.0
    while line.a > 0 and 2 * t <= LONGEST:
        slopes = (0.5 * line.b + line.a * 2 * t) / line.squared(2 * t).sqrt().clamp(
            min=stop.smoothing
        )
        if not float(shares @ slopes) <= 0:
            break
        t *= 2
    return t
