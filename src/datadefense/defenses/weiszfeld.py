"""The geometric median by Weiszfeld's iterations, without reading the updates in an iteration.

Every iterate is v = weights @ updates, so its distances follow from the n x n inner products of the
updates, or from their pairwise distances, in n^2 steps. So attackers who cause many iterations cost
n^2 steps each, never a pass over n x dim numbers.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from jaxtyping import Float64
from torch import Tensor

PLAIN = 100
"""Iterations before steps are made longer. Honest rounds need about ten."""
LONGEST = 2.0**40
"""The greatest factor by which a step is made longer."""
TIE = 1e-6
"""Sums of distances, and radii, whose relative difference is at most this count as equal."""
HALF = 0.5 - 1e-9
"""Half of the examples, less a margin for rounding in the sum of shares."""
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
    """A way to compute the distances from any v = weights @ updates."""

    def along(
        self, weights: Float64[Tensor, " clients"], step: Float64[Tensor, " clients"]
    ) -> Parabolas:
        """Return the squared distances from (weights + t step) @ updates; a step sums to 0."""

    def distances(self, weights: Float64[Tensor, " clients"]) -> Float64[Tensor, " clients"]:
        """Return the distances from weights @ updates."""


@dataclass(frozen=True, slots=True, eq=False)
class ByPairs:
    r"""From the pairwise squared distances D alone; accurate while no update is far out.

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
    r"""From the inner products K of the updates minus one of them that is near the middle.

    .. math:: \lVert u_j - v \rVert^2 = K_{jj} - 2 (K w)_j + w^\top K w, \qquad \sum_j w_j = 1

    The weight of an update falls with its distance, and the rounding error of a product is relative
    to its size; so in the weighted sum a far update causes no greater error than a near one.
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
    """The result: v = weights @ updates, the distances from it (at least nu), and how it ended."""

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
    """Return the update with the smallest such ball; of equal radii, the first.

    While attackers have less than half of the examples, the ball is no larger than one around an
    honest update and contains an honest update. So attackers cannot move the row or the radius far
    away, whatever they send and however many they are.
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
    median, so that the medoid does not get all weight. Of sums that are equal up to 1e-6 the first
    is taken, so that the choice does not depend on the processor's rounding.
    """
    lengths = pairs.sqrt()
    sums = lengths @ shares
    from_medoid = lengths[int((~(sums > sums.min() * (1 + TIE))).nonzero()[0])]
    return _weights_at(shares, from_medoid, float(from_medoid.median()))


def start_near_middle(
    shares: Float64[Tensor, " clients"], pairs: Float64[Tensor, "clients clients"], middle: Middle
) -> Float64[Tensor, " clients"]:
    """Return weights to start from where far updates hide the differences of near ones in a sum.

    They are those of an iteration at the middle; distances within its ball count as the radius.
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

    until no distance changes by more than the tolerance, relative to itself. (Others stop when the
    objective no longer changes; with an attacker far away its distance dominates the sum, and the
    objective shows nothing.)

    Where an update is almost the median, the iterations converge very slowly. So after the first
    hundred each step is made longer (see `reach`); the weights returned are always those of a plain
    step.
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

    The sum :math:`\sum_j \alpha_j \lVert u_j - v \rVert` is convex, so its slope along the line
    grows with t. Far attackers do not reduce the slope's precision: in it, each client is a unit
    vector.
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
