"""Absent: send nothing that counts, so that what is left is what a perfect defense would leave."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import Loot, Situation, Twist
from datadefense.examples import Examples
from datadefense.training import Bench


@dataclass(frozen=True, slots=True)
class SendsNothing(Twist):
    """Send an update that every gate rejects.

    Not an attack but a yardstick: averaging then has the honest clients of each round and nobody
    else, as if it had known the attackers. How much accuracy the attackers' places cost, whatever
    the defense, is what such a run loses.
    """

    def examples(self, loot: Loot, situation: Situation) -> Examples:
        """Return one example: nothing is made of it."""
        return loot.clean.take(torch.arange(min(1, len(loot.clean))))

    def finish(
        self, update: Float[Tensor, " dim"], bench: Bench, loot: Loot, situation: Situation
    ) -> Float[Tensor, " dim"]:
        """Return what is not a number."""
        return torch.full_like(update, torch.nan)
