"""Sign flip: train honestly, and send the opposite."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import AttackContext, AttackerData, Threat
from datadefense.attacks.poisoned_training import PoisonedTraining
from datadefense.attacks.untargeted import sendable
from datadefense.core.examples import Examples
from datadefense.core.local_training import Trainer
from datadefense.core.settings import check_float, setting


@dataclass(frozen=True, slots=True)
class SignFlip(PoisonedTraining):
    r"""Untargeted: train honestly, and send the opposite.

    Each attacker sends :math:`-s u` with the update u of an honest training on its own clean
    examples. It needs to know nothing; `datadefense.attacks.ipm` is the same with the mean of all
    honest updates.

    Reference: Li et al., *RSA: Byzantine-Robust Stochastic Aggregation Methods for Distributed
    Learning from Heterogeneous Datasets*, AAAI 2019; with s = 1, Karimireddy et al., *Learning from
    History for Byzantine Robust Optimization*, ICML 2021.

    Differs: in ByzFL each sends the opposite of the honest mean, which it would have to see.
    """

    factor: float = setting(1.0, "what the opposite is multiplied by, s")

    name: ClassVar[str] = "sign-flip"
    threat: ClassVar[Threat] = Threat("own data", scales=False)

    def __post_init__(self) -> None:
        check_float("factor", self.factor, above=0)

    def examples(self, data: AttackerData, context: AttackContext) -> Examples:
        """Return the clean examples only."""
        return data.clean

    def num_examples(self, data: AttackerData) -> int:
        """Claim the clean examples only."""
        return max(1, len(data.clean))

    def finish(
        self,
        update: Float[Tensor, " dim"],
        trainer: Trainer,
        data: AttackerData,
        context: AttackContext,
    ) -> Float[Tensor, " dim"]:
        """Return the opposite."""
        return sendable(-self.factor * update)
