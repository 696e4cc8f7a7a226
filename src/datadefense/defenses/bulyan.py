"""Bulyan: Krum selects clients; each coordinate is the mean of its values near their median."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.core.defense import Combined, Promise, Rule, too_few
from datadefense.core.reasons import Reason
from datadefense.core.round import Round
from datadefense.core.settings import check_int, setting
from datadefense.defenses.krum import krum_scores
from datadefense.kernels.distances import squared_distances
from datadefense.kernels.networks import mean_of_rows, reduce_columns, sorting_network


def select_by_krum(
    distances: Float64[Tensor, "clients clients"], count: int, num_malicious: int
) -> list[int]:
    """Choose ``count`` clients: the best by Krum, then the best of those left, and so on."""
    left = list(range(len(distances)))
    chosen: list[int] = []
    while len(chosen) < count:
        index = torch.tensor(left)
        best = int(krum_scores(distances[index][:, index], num_malicious).argmin())
        chosen.append(left.pop(best))
    return chosen


def mean_around_median(
    updates: Float[Tensor, "clients dim"], clients: list[int], count: int
) -> Float[Tensor, " dim"]:
    """Return, in each column, the mean of the ``count`` chosen values nearest their median.

    In a sorted column the nearest values are neighbours: a window of ``count`` rows. The window
    holds exactly one of the rows r, r + count, r + 2 count, ..., so row r is replaced by row
    r + count where that is nearer to the median (if equally near, the smaller value stays).
    """
    size = len(clients)

    def reduce(rows: list[Tensor], out: Tensor) -> None:
        middle = torch.empty_like(out)
        mean_of_rows(rows[(size - 1) // 2 : size // 2 + 1], middle)
        window = list(rows[:count])
        for row in range(count, size):
            low, high = window[row % count], rows[row]
            window[row % count] = torch.where(high - middle < middle - low, high, low)
        mean_of_rows(window, out)

    return reduce_columns(updates, sorting_network(size), reduce, clients)


def _not_chosen(scores: Float64[Tensor, " clients"], chosen: list[int]) -> list[Reason | None]:
    """Return the first Krum score of each client that was not chosen, beside the usual one.

    Choices are made by scores among those left at the time, so the first need not be the worst.
    """
    usual, chosen_rows = float(scores[chosen].median()), set(chosen)
    return [
        None if row in chosen_rows else Reason("repeated_krum", score, usual)
        for row, score in enumerate(scores.tolist())
    ]


@dataclass(frozen=True, slots=True)
class Bulyan(Rule):
    r"""Choose n - 2f clients by repeated Krum, then average near the median of each coordinate.

    With the :math:`\theta = n - 2f` chosen, coordinate i of the update is the mean of the
    :math:`\theta - 2f` values nearest the median of the chosen in that coordinate. While choosing,
    at least one neighbour counts, and ties go to the lower index (with one neighbour, two clients
    that are each other's nearest always tie, so the order of clients can matter); of two values
    equally near the median the smaller stays. Needs n >= 4f + 3; with fewer clients: the median of
    each coordinate while n >= 2f + 1, else the model stays.

    Reference: El Mhamdi, Guerraoui, Rouault, *The Hidden Vulnerability of Distributed Learning in
    Byzantium*, ICML 2018.

    Differs from Flower's, which scores the clients once instead of again after each choice.
    """

    num_malicious: int = setting(1, "assumed number of attackers f in a round")

    name: ClassVar[str] = "bulyan"
    promises: ClassVar[Promise] = Promise.UNANIMOUS | Promise.TRANSLATES | Promise.BOUNDED

    def __post_init__(self) -> None:
        check_int("num_malicious", self.num_malicious, 0)

    def shortage(self, num_clients: int) -> str | None:
        """Bulyan needs n >= 4f + 3."""
        return too_few(self.name, num_clients, self.num_malicious, 4, 3)

    def combine(self, round: Round) -> Combined:
        """Return the mean around the median of the chosen."""
        f = self.num_malicious
        theta = round.num_clients - 2 * f
        distances = squared_distances(round.updates)
        chosen = select_by_krum(distances, theta, f)
        update = mean_around_median(round.updates, chosen, theta - 2 * f)
        marks = round.updates.new_zeros(round.num_clients)
        marks[chosen] = 1.0
        scores = krum_scores(distances, f)
        return Combined(
            update,
            evidence={"chosen": marks, "score": scores},
            reasons=_not_chosen(scores, chosen),
        )
