"""Inner product manipulation: the honest mean, turned round."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import Threat
from datadefense.attacks.oracle import mean
from datadefense.attacks.untargeted import Crafted, MaybeGuessing
from datadefense.core.settings import check_float, setting


@dataclass(frozen=True, slots=True)
class Ipm(MaybeGuessing):
    r"""Untargeted: send the honest mean, turned round.

    All send :math:`-\epsilon \mu`. A plain average, in which the attackers' share is w, then moves
    by :math:`(1 - w - \epsilon w) \mu`: backwards from :math:`\epsilon > (1 - w) / w` on. A small
    :math:`\epsilon` (0.1) stays so close to the honest updates that Krum picks it, if these are
    few or differ; against averages the paper takes up to 100.

    Reference: Xie et al., *Fall of Empires: Breaking Byzantine-Tolerant SGD by Inner Product
    Manipulation*, UAI 2019.
    """

    epsilon: float = setting(0.5, "what the honest mean is multiplied by, and turned round")

    name: ClassVar[str] = "ipm"
    threat: ClassVar[Threat] = Threat("what honest clients send; or nothing", scales=True)

    def __post_init__(self) -> None:
        MaybeGuessing.__post_init__(self)
        check_float("epsilon", self.epsilon, above=0)

    def craft(
        self, honest: Float[Tensor, "honest dim"], own: Float[Tensor, "attackers dim"]
    ) -> Crafted:
        """Turn the mean round."""
        return -self.epsilon * mean(honest), {}
