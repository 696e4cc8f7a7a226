"""Absent: attackers send nothing that counts, which is the best that a defense could achieve."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import Attack, AttackContext, AttackerData, Threat
from datadefense.core.local_training import Trainer


@dataclass(frozen=True, slots=True)
class Absent(Attack):
    """Send nothing that counts: the result that a perfect defense would have.

    Not an attack but a yardstick: averaging then has the honest clients of each round and nobody
    else, as if it had known the attackers. How much accuracy the attackers' places cost, whatever
    the defense, is what such a run loses.
    """

    name: ClassVar[str] = "absent"
    threat: ClassVar[Threat] = Threat("nothing: a yardstick")

    def update(
        self, trainer: Trainer, data: AttackerData, context: AttackContext
    ) -> Float[Tensor, " dim"]:
        """Return what is not a number, which every gate rejects."""
        return torch.full_like(context.start, torch.nan)
