"""RFA: the geometric median of the updates, by smoothed Weiszfeld iterations."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from datadefense.core.defense import BOUNDED_MEAN, Combined, Promise, Rule
from datadefense.core.round import Round
from datadefense.core.settings import check_float, check_int, setting
from datadefense.defenses.weiszfeld import (
    ByPairs,
    ByProducts,
    Measure,
    Stop,
    middle_of,
    start_near_medoid,
    start_near_middle,
    weiszfeld,
)
from datadefense.kernels.distances import gram_of_differences, squared_distances

WIDEST_SPREAD = 1e6
"""Greatest squared distance divided by the squared radius of the middle, up to which distances from
the median are computed from the pairwise ones. Above it that would cancel, and they are computed
from inner products."""


@dataclass(frozen=True, slots=True)
class Rfa(Rule):
    r"""Take the geometric median of the updates, weighted by examples.

    .. math:: v = \arg\min_v \sum_j \frac{n_j}{n} \lVert u_j - v \rVert

    by smoothed Weiszfeld iterations (see `weiszfeld`), to convergence by default. Any number of
    clients; attackers' influence is bounded while they claim less than half of all examples. The
    matrix of updates is read a fixed number of times, whatever its content.

    Reference: Pillutla, Kakade, Harchaoui, *Robust Aggregation for Federated Learning*, IEEE TSP
    2022, algorithm 2. Differs: they start at the mean and stop after a few iterations
    (``max_iterations=3``), which is not enough where an update of size 1e30 moves the mean; we
    start near the medoid (or the middle, where some updates are far out) and iterate to the end.
    """

    max_iterations: int = setting(1000, "most Weiszfeld iterations")
    tolerance: float = setting(1e-7, "stop when no distance changes by a greater share")
    smoothing: float = setting(1e-6, "least distance nu that a weight is divided by")

    name: ClassVar[str] = "rfa"
    promises: ClassVar[Promise] = BOUNDED_MEAN

    def __post_init__(self) -> None:
        check_int("max_iterations", self.max_iterations, 1)
        check_float("tolerance", self.tolerance, minimum=0)
        check_float("smoothing", self.smoothing, above=0)

    def combine(self, round: Round) -> Combined:
        """Return the weights of the geometric median."""
        pairs = squared_distances(round.updates)
        counts = round.num_examples.double()
        shares = counts / counts.sum()
        middle = middle_of(shares, pairs)
        measure: Measure = ByPairs(pairs)
        if float(pairs.max()) <= WIDEST_SPREAD * middle.radius**2:
            start = start_near_medoid(shares, pairs)
        else:
            rows = torch.arange(round.num_clients)
            measure = ByProducts(gram_of_differences(round.updates, rows, middle.row))
            start = start_near_middle(shares, pairs, middle)
        stop = Stop(self.max_iterations, self.tolerance, self.smoothing)
        found = weiszfeld(shares, start, measure, stop)
        return Combined(
            weights=found.weights.to(round.updates.dtype),
            evidence={"distance": found.distances},
            report={"iterations": found.iterations, "converged": found.converged},
        )
