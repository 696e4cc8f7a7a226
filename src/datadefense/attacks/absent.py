"""Absent: send nothing that counts, so that what is left is what a perfect defense would leave."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import AttackContext, AttackerData, Twist
from datadefense.core.examples import Examples
from datadefense.core.local_training import Trainer


@dataclass(frozen=True, slots=True)
class SendsNothing(Twist):
    """Send an update that every gate rejects.

    Not an attack but a yardstick: averaging then has the honest clients of each round and nobody
    else, as if it had known the attackers. How much accuracy the attackers' places cost, whatever
    the defense, is what such a run loses.
    """

    def examples(self, attacker_data: AttackerData, context: AttackContext) -> Examples:
        """Return one example: nothing is made of it."""
        return attacker_data.clean.take(torch.arange(min(1, len(attacker_data.clean))))

    def finish(
        self,
        update: Float[Tensor, " dim"],
        trainer: Trainer,
        attacker_data: AttackerData,
        context: AttackContext,
    ) -> Float[Tensor, " dim"]:
        """Return what is not a number."""
        return torch.full_like(update, torch.nan)
