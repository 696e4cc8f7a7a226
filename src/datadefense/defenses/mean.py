"""FedAvg: the mean of the updates by number of examples; no defense (Eq. 1)."""

from dataclasses import dataclass
from typing import ClassVar

from datadefense.core.defense import MEAN, Combined, Promise, Rule
from datadefense.core.round import Round


@dataclass(frozen=True, slots=True)
class FedAvg(Rule):
    r"""Average the updates by number of examples; no defense.

    .. math:: \bar\phi^t = \bar\phi^{t-1} + \sum_j \frac{n_j}{n} (\phi_j^t - \bar\phi^{t-1})

    Any number of clients. A single client can change the model to anything.

    Reference: McMahan et al., *Communication-Efficient Learning of Deep Networks from
    Decentralized Data*, AISTATS 2017; Eq. 1 of the DataDefense paper.
    """

    name: ClassVar[str] = "fedavg"
    promises: ClassVar[Promise] = MEAN

    def combine(self, round: Round) -> Combined:
        """Weight each client by its share of the examples."""
        return Combined(weights=round.shares())
