"""A little is enough: hide the backdoor within the spread of honest updates."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import AttackContext, AttackerData, Threat, imitation
from datadefense.attacks.poisoned_training import OwnTraining
from datadefense.core.local_training import Trainer
from datadefense.core.settings import check_float, check_int, setting


def largest_z(clients: int, attackers: int) -> float:
    r"""Return how many standard deviations away an attacker still has supporters enough.

    .. math:: s = \lfloor n/2 + 1 \rfloor - m, \qquad z = \Phi^{-1}\Big(\frac{n - m - s}{n - m}\Big)
    """
    supporters = clients // 2 + 1 - attackers
    share = (clients - attackers - supporters) / max(1, clients - attackers)
    return NormalDist().inv_cdf(min(max(share, 0.5), 0.999))


@dataclass(frozen=True, slots=True)
class Lie(OwnTraining):
    r"""A little is enough: hide within the spread of honest updates.

    Clip the poisoned update, coordinate by coordinate, to :math:`\mu \pm z \sigma`.

    Mean and deviation are those of honest updates, which the attacker guesses: it trains
    ``imitations`` honest clients on halves of its clean examples.

    Reference: Baruch et al., *A Little Is Enough*, NeurIPS 2019, section 4 (backdoor).
    """

    imitations: int = setting(4, "honest clients that the attacker imitates to learn the spread")
    z: float | None = setting(None, "standard deviations; none: from the size of the round")

    name: ClassVar[str] = "lie"
    threat: ClassVar[Threat] = Threat("how large a round is", trains_longer=True)

    def __post_init__(self) -> None:
        OwnTraining.__post_init__(self)
        check_int("imitations", self.imitations, 2)
        if self.z is not None:
            check_float("z", self.z, minimum=0)

    def finish(
        self,
        update: Float[Tensor, " dim"],
        trainer: Trainer,
        data: AttackerData,
        context: AttackContext,
    ) -> Float[Tensor, " dim"]:
        """Return the update within the guessed spread."""
        honest = torch.stack(
            [imitation(trainer, data, context, number) for number in range(self.imitations)]
        )
        z = largest_z(context.clients, context.attacker[1]) if self.z is None else self.z
        middle, spread = honest.mean(0), honest.std(0)
        return torch.clamp(update, middle - z * spread, middle + z * spread)
