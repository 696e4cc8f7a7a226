"""RLR: step backwards in the coordinates on whose direction too few clients agree."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from datadefense.core.defense import Combined, Promise, Rule, too_few
from datadefense.core.round import Round
from datadefense.core.settings import check_float, check_int, setting
from datadefense.kernels.signs import sign_votes
from datadefense.kernels.sums import weighted_sum

ROUNDING = 1e-9
"""A share times n that is above an integer by no more than this is that integer."""


@dataclass(frozen=True, slots=True)
class Rlr(Rule):
    r"""Average by examples, and turn the sign of each coordinate where clients disagree.

    .. math:: u_i = \begin{cases} \phantom{-}m_i & |\sum_j \mathrm{sign}(u_{ji})| \ge \theta \\
                                  -m_i & \text{else} \end{cases},
              \qquad m = \sum_j \frac{n_j}{n} u_j

    The threshold is theta = 2f + 1, or ``threshold`` n rounded up. f attackers alone cannot
    decide a coordinate on which the honest are split. The mean is not robust itself: one huge
    update moves the model by as much, forwards or backwards. With theta above n/2 most coordinates
    of skewed clients are turned and the model walks backwards; the report warns of it. Needs
    n >= 2f + 1; with fewer clients the model stays.

    Reference: Ozdayi, Kantarcioglu, Gel, *Defending against Backdoors in Federated Learning with
    Robust Learning Rate*, AAAI 2021. Their commands have theta 4 of 10 clients, 8 of 40, 8 of 34.

    Differs: BackFed takes theta = 8 of 10, with which its logs show a model that does not learn.
    Public copies also turn BatchNorm's running variance; here a variance never falls below 0.
    """

    num_malicious: int = setting(1, "assumed number of attackers f in a round")
    threshold: float | None = setting(
        None, "least agreement theta as a share of the clients; none: 2f + 1 clients"
    )

    name: ClassVar[str] = "rlr"
    promises: ClassVar[Promise] = Promise.SYMMETRIC | Promise.UNANIMOUS | Promise.TRANSLATES

    def __post_init__(self) -> None:
        check_int("num_malicious", self.num_malicious, 0)
        if self.threshold is not None:
            check_float("threshold", self.threshold, above=0, maximum=1)

    def shortage(self, num_clients: int) -> str | None:
        """All together must reach the threshold: n >= 2f + 1."""
        return too_few(self.name, num_clients, self.num_malicious, 2, 1)

    def least_agreement(self, num_clients: int) -> int:
        """Return theta in clients."""
        if self.threshold is None:
            return 2 * self.num_malicious + 1
        return max(1, math.ceil(self.threshold * num_clients - ROUNDING))

    def combine(self, round: Round) -> Combined:
        """Return the mean with the signs of disputed coordinates turned."""
        theta = self.least_agreement(round.num_clients)
        disputed = sign_votes(round.updates).abs_() < theta
        mean = weighted_sum(round.shares(), round.updates)
        report: dict[str, Any] = {
            "threshold": theta,
            "turned": float(disputed.double().mean()),
        }
        if theta > round.num_clients / 2:
            report["caution"] = f"theta={theta} is above n/2={round.num_clients / 2:g}"
        return Combined(torch.where(disputed, -mean, mean), report=report)
