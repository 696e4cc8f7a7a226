"""Krum and Multi-Krum: keep the updates that are closest to their neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float64
from torch import Tensor

from datadefense.core.defense import BOUNDED_MEAN, Combined, Promise, Rule, too_few
from datadefense.core.reasons import Reason
from datadefense.core.round import Round
from datadefense.core.settings import check_choice, check_int, setting
from datadefense.kernels.distances import squared_distances


def krum_scores(
    distances: Float64[Tensor, "clients clients"], num_malicious: int
) -> Float64[Tensor, " clients"]:
    r"""Return each client's sum of squared distances to its nearest neighbours.

    .. math:: \mathrm{score}(j) = \sum_{i \in N_j} D_{ij}

    where :math:`N_j` are the n - f - 2 clients nearest to j, at least one. Client j itself is
    excluded by its index, not by its distance of zero.
    """
    clients = len(distances)
    neighbours = min(max(1, clients - num_malicious - 2), clients - 1)
    others = distances.clone().fill_diagonal_(torch.inf)
    return others.sort(dim=1).values[:, :neighbours].sum(1)


def not_chosen(scores: Float64[Tensor, " clients"], chosen: Sequence[int]) -> list[Reason | None]:
    """Return the reason of each client that was not chosen: its score beside the worst chosen."""
    worst = float(scores[list(chosen)].max())
    chosen_rows = set(chosen)
    return [
        None if row in chosen_rows else Reason("krum_score", score, worst)
        for row, score in enumerate(scores.tolist())
    ]


@dataclass(frozen=True, slots=True)
class Krum(Rule):
    r"""Keep the one update that is closest to its n - f - 2 nearest neighbours.

    .. math:: u = u_{j^*}, \qquad j^* = \arg\min_j \sum_{i \in N_j} \lVert u_i - u_j \rVert^2

    Ties go to the lower index. Needs n >= f + 3 (at least one neighbour); the guarantee of the
    paper needs n >= 2f + 3. With fewer clients: the median of each coordinate while n >= 2f + 1,
    else the model stays.

    Reference: Blanchard et al., *Machine Learning with Adversaries: Byzantine Tolerant Gradient
    Descent*, NeurIPS 2017.

    Differs from Flower's: distances are between updates, not models, and are computed without
    cancellation.
    """

    num_malicious: int = setting(1, "assumed number of attackers f in a round")

    name: ClassVar[str] = "krum"
    promises: ClassVar[Promise] = BOUNDED_MEAN

    def __post_init__(self) -> None:
        check_int("num_malicious", self.num_malicious, 0)

    def shortage(self, num_clients: int) -> str | None:
        """Krum needs a neighbour: n >= f + 3."""
        return too_few(self.name, num_clients, self.num_malicious, 1, 3)

    def combine(self, round: Round) -> Combined:
        """Return the update with the least score."""
        scores = krum_scores(squared_distances(round.updates), self.num_malicious)
        best = int(scores.argmin())
        weights = round.updates.new_zeros(round.num_clients)
        weights[best] = 1.0
        return Combined(
            round.updates[best], weights, {"score": scores}, reasons=not_chosen(scores, [best])
        )


@dataclass(frozen=True, slots=True)
class MultiKrum(Rule):
    r"""Average the n - f updates with the best Krum scores.

    Ties go to the lower index. Needs n >= f + 3; with fewer clients as Krum.

    Reference: Blanchard et al., NeurIPS 2017, section 5.

    Differs from the authors of edge-case backdoors (Wang et al., NeurIPS 2020), who weight the
    chosen by number of examples: ``weighting="examples"`` does that, but the number is the
    client's own claim.
    """

    num_malicious: int = setting(1, "assumed number of attackers f in a round")
    weighting: Literal["uniform", "examples"] = setting(
        "uniform", "how the chosen are averaged: uniform or examples"
    )

    name: ClassVar[str] = "multi-krum"
    promises: ClassVar[Promise] = BOUNDED_MEAN

    def __post_init__(self) -> None:
        check_int("num_malicious", self.num_malicious, 0)
        check_choice("weighting", self.weighting, ("uniform", "examples"))

    def shortage(self, num_clients: int) -> str | None:
        """Multi-Krum needs a neighbour: n >= f + 3."""
        return too_few(self.name, num_clients, self.num_malicious, 1, 3)

    def combine(self, round: Round) -> Combined:
        """Weight the chosen updates equally, or by examples."""
        scores = krum_scores(squared_distances(round.updates), self.num_malicious)
        chosen = scores.sort(stable=True).indices[: round.num_clients - self.num_malicious]
        shares = round.shares() if self.weighting == "examples" else torch.ones_like(round.shares())
        weights = torch.zeros_like(shares)
        weights[chosen] = shares[chosen] / shares[chosen].sum()
        return Combined(
            weights=weights,
            evidence={"score": scores},
            reasons=not_chosen(scores, chosen.tolist()),
        )
