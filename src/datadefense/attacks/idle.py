"""Idle: send almost no change, so that honest updates look too long beside it; no backdoor."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import AttackContext, AttackerData, Threat
from datadefense.attacks.poisoned_training import OwnTraining
from datadefense.core.examples import Examples
from datadefense.core.local_training import Trainer
from datadefense.core.settings import check_float, setting


@dataclass(frozen=True, slots=True)
class Idle(OwnTraining):
    r"""Send almost no change: no backdoor, but honest updates look too long beside it.

    Train honestly and send :math:`s \cdot u`, a small share of the update.

    Who trusts what lies close to the released model, or close together, trusts these clients: the
    federation stops learning. Against a defense that is to keep backdoors out, the cheapest attack
    on what it is to let in.
    """

    share: float = setting(0.001, "share s of the honest update that is sent")

    name: ClassVar[str] = "idle"
    threat: ClassVar[Threat] = Threat()

    def __post_init__(self) -> None:
        OwnTraining.__post_init__(self)
        check_float("share", self.share, minimum=0, maximum=1)

    def examples(self, data: AttackerData, context: AttackContext) -> Examples:
        """Return the clean examples only."""
        return data.clean

    def finish(
        self,
        update: Float[Tensor, " dim"],
        trainer: Trainer,
        data: AttackerData,
        context: AttackContext,
    ) -> Float[Tensor, " dim"]:
        """Return the share."""
        return self.share * update
