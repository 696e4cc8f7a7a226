"""Median and trimmed mean: robust statistics of each coordinate on its own."""

from dataclasses import dataclass
from typing import ClassVar

from datadefense.core.defense import Combined, Promise, Rule, too_few
from datadefense.core.round import Round
from datadefense.core.settings import check_int, setting
from datadefense.kernels.networks import median, trimmed_mean


@dataclass(frozen=True, slots=True)
class Median(Rule):
    r"""Take the median of each coordinate.

    .. math:: u_i = \mathrm{median}(u_{1i}, \dots, u_{ni})

    The median of an even number of values is the mean of the two in the middle. Any number of
    clients; numbers of examples are ignored.

    Reference: Yin et al., *Byzantine-Robust Distributed Learning*, ICML 2018, definition 1.
    """

    name: ClassVar[str] = "median"
    promises: ClassVar[Promise] = (
        Promise.SYMMETRIC | Promise.UNANIMOUS | Promise.TRANSLATES | Promise.BOUNDED
    )

    def combine(self, round: Round) -> Combined:
        """Return the median update."""
        return Combined(median(round.updates))


@dataclass(frozen=True, slots=True)
class TrimmedMean(Rule):
    r"""Average each coordinate without its f smallest and f largest values.

    .. math:: u_i = \frac{1}{n - 2f} \sum_{k=f+1}^{n-f} u_{(k)i}

    where :math:`u_{(k)i}` is the k-th smallest value of coordinate i. Needs n >= 2f + 1; with
    fewer clients the model stays. Numbers of examples are ignored.

    Reference: Yin et al., *Byzantine-Robust Distributed Learning*, ICML 2018, definition 2.
    """

    num_malicious: int = setting(
        1, "assumed number of attackers f; f values are dropped at each end"
    )

    name: ClassVar[str] = "trimmed-mean"
    promises: ClassVar[Promise] = (
        Promise.SYMMETRIC | Promise.UNANIMOUS | Promise.TRANSLATES | Promise.BOUNDED
    )

    def __post_init__(self) -> None:
        check_int("num_malicious", self.num_malicious, 0)

    def shortage(self, num_clients: int) -> str | None:
        """At least one value must be left: n >= 2f + 1."""
        return too_few(self.name, num_clients, self.num_malicious, 2, 1)

    def combine(self, round: Round) -> Combined:
        """Return the trimmed mean update."""
        return Combined(trimmed_mean(round.updates, self.num_malicious))
