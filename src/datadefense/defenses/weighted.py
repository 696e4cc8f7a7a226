"""Median and trimmed mean of each coordinate by numbers of examples, with a cap on claims."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from datadefense.core.defense import Combined, Promise, Rule, too_few
from datadefense.core.round import Round
from datadefense.core.settings import check_float, check_int, setting
from datadefense.kernels.weighted_columns import weighted_median, weighted_trimmed_mean

ROUNDING = 1e-12
"""A share that is above the cap by no more is at the cap."""


def capped_shares(
    num_examples: Int[Tensor, " clients"], max_share: float
) -> Float64[Tensor, " clients"]:
    r"""Return shares :math:`\min(c\, n_j, m)` that sum to 1, with m the cap.

    What the largest lose goes to the others by their numbers, until nobody is above the cap. Where
    n clients cannot all stay below it, m < 1/n, all shares are 1/n.

    >>> capped_shares(torch.tensor([80, 10, 10]), 0.4)
    tensor([0.4000, 0.3000, 0.3000], dtype=torch.float64)
    """
    shares = num_examples.double() / num_examples.double().sum()
    clients = len(shares)
    if max_share * clients <= 1:
        return torch.full_like(shares, 1 / clients)
    capped = torch.zeros(clients, dtype=torch.bool)
    while bool((over := (shares > max_share + ROUNDING) & ~capped).any()):
        capped |= over
        left = 1 - max_share * int(capped.sum())
        shares = torch.where(capped, max_share, shares * (left / shares[~capped].sum()))
    return shares


@dataclass(frozen=True, slots=True)
class WeightedMedian(Rule):
    r"""Take of each coordinate the value up to which there is half of the weight.

    .. math:: u_i = \min \Big\{ x : \sum_{j : u_{ji} \le x} s_j \ge \tfrac12 \Big\}

    with shares s_j by examples, none above ``max_share`` (`capped_shares`); at exactly a half, the
    mean of this value and the next. With equal numbers it is ``median``. The numbers are the
    clients' own claims: attackers who hold less than half of the weight after the cap cannot carry
    a coordinate beyond honest values. Any number of clients; below 1/max_share of them all weigh
    the same.

    Reference: Yin et al., *Byzantine-Robust Distributed Learning*, ICML 2018, definition 1, for
    equal weights. The weighted form with a cap is ours.
    """

    max_share: float = setting(0.25, "most of all weight that one client can have")

    name: ClassVar[str] = "weighted-median"
    promises: ClassVar[Promise] = (
        Promise.SYMMETRIC | Promise.UNANIMOUS | Promise.TRANSLATES | Promise.BOUNDED
    )

    def __post_init__(self) -> None:
        check_float("max_share", self.max_share, above=0, below=0.5)

    def combine(self, round: Round) -> Combined:
        """Return the weighted median update."""
        shares = capped_shares(round.num_examples, self.max_share)
        return Combined(weighted_median(round.updates, shares), evidence={"share": shares})


@dataclass(frozen=True, slots=True)
class WeightedTrimmedMean(Rule):
    r"""Average each coordinate by examples without the outer weight of f clients at either end.

    .. math:: u_i = \frac{1}{1 - 2t} \int_t^{1-t} Q_i(p) \, dp, \qquad t = f \max_j s_j

    where Q_i is the quantile function of coordinate i under shares s_j by examples, none above
    min(``max_share``, 1 / (2f + 1)) (`capped_shares`). So f clients never hold more than is cut
    off at an end, whatever they claim, and something is left. With equal numbers it is
    ``trimmed-mean``. Needs n >= 2f + 1; with fewer clients the model stays.

    Reference: Yin et al., *Byzantine-Robust Distributed Learning*, ICML 2018, definition 2, for
    equal weights. The weighted form with a cap is ours.
    """

    num_malicious: int = setting(1, "assumed number of attackers f: their weight is cut off")
    max_share: float = setting(0.25, "most of all weight that one client can have")

    name: ClassVar[str] = "weighted-trimmed-mean"
    promises: ClassVar[Promise] = (
        Promise.SYMMETRIC | Promise.UNANIMOUS | Promise.TRANSLATES | Promise.BOUNDED
    )

    def __post_init__(self) -> None:
        check_int("num_malicious", self.num_malicious, 0)
        check_float("max_share", self.max_share, above=0, below=0.5)

    def shortage(self, num_clients: int) -> str | None:
        """Something must be left: n >= 2f + 1."""
        return too_few(self.name, num_clients, self.num_malicious, 2, 1)

    def combine(self, round: Round) -> Combined:
        """Return the weighted trimmed mean update."""
        cap = min(self.max_share, 1 / (2 * self.num_malicious + 1))
        shares = capped_shares(round.num_examples, cap)
        trim = self.num_malicious * float(shares.max())
        return Combined(
            weighted_trimmed_mean(round.updates, shares, trim),
            evidence={"share": shares},
            report={"trimmed": trim},
        )
