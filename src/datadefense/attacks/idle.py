"""Hardly move: no backdoor, but beside such clients the honest ones seem to go too far."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import Loot, Situation, Twist
from datadefense.examples import Examples
from datadefense.settings import number, setting
from datadefense.training import Bench


@dataclass(frozen=True, slots=True)
class HardlyMoves(Twist):
    r"""Train honestly and send :math:`s \cdot u`, a small share of the update.

    Who trusts what lies close to the released model, or close together, trusts these clients: the
    federation stops learning. Against a defense that is to keep backdoors out, the cheapest attack
    on what it is to let in.
    """

    share: float = setting(0.001, "share s of the honest update that is sent")

    def __post_init__(self) -> None:
        number("share", self.share, minimum=0, maximum=1)

    def examples(self, loot: Loot, situation: Situation) -> Examples:
        """Return the clean examples only."""
        return loot.clean

    def finish(
        self, update: Float[Tensor, " dim"], bench: Bench, loot: Loot, situation: Situation
    ) -> Float[Tensor, " dim"]:
        """Return the share."""
        return self.share * update
