"""Untargeted attacks: attackers who spoil the model by what they agree to send; no backdoor."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import Attack, AttackContext, AttackerData, Sees
from datadefense.attacks.collusion import Plot, View
from datadefense.core.gate import LARGEST
from datadefense.core.local_training import Trainer
from datadefense.core.settings import check_choice, setting

Knowledge = Literal["updates", "nothing"]
LEVELS: tuple[Knowledge, ...] = ("updates", "nothing")
FEWEST = 2
"""Stand-ins at the least: one alone has no spread."""
Crafted = tuple[Float[Tensor, "attackers dim"] | Float[Tensor, " dim"], Mapping[str, float]]
"""What all attackers send (a vector), or each of them (a row each), and figures behind it."""


@dataclass(frozen=True, slots=True)
class Untargeted(Attack):
    """Send what is made of the honest updates of the round; a subclass writes `craft`.

    The attackers train nothing and use no poison: they claim as many examples as they hold clean
    ones. Where no honest update is to be had (all attack, or none is finite), they send zeros.
    """

    @abstractmethod
    def craft(
        self, honest: Float[Tensor, "honest dim"], own: Float[Tensor, "attackers dim"]
    ) -> Crafted:
        """Return what is sent, given finite honest updates, one at least, and what `update` gave.

        What is not finite in it is made so (`sendable`).
        """

    def update(
        self, trainer: Trainer, data: AttackerData, context: AttackContext
    ) -> Float[Tensor, " dim"]:
        """Return zeros: what is sent is agreed upon when all have trained."""
        return torch.zeros_like(context.start)

    def num_examples(self, data: AttackerData) -> int:
        """Claim the clean examples only."""
        return max(1, len(data.clean))

    def sees(self) -> Sees:
        """Return what honest clients send."""
        return Sees.HONEST_UPDATES

    def agree(self, view: View) -> Plot | None:
        """Make what is sent of the honest updates, or of what stands for them."""
        own = view.round.updates[view.attacks]
        shown = Sees.HONEST_UPDATES in self.sees()
        honest = view.round.updates[~view.attacks] if shown else view.stand_ins
        honest = finite_rows(honest)
        if not len(honest):
            return Plot(torch.zeros_like(own))
        sent, facts = self.craft(honest, own)
        return Plot(sendable(sent).expand(len(own), -1), facts)


@dataclass(frozen=True, slots=True)
class MaybeGuessing(Untargeted):
    """Untargeted, by the honest updates or by honest trainings of the attackers' own.

    These are trained on halves of the attackers' clean examples, as many as there are honest
    clients, but two at the least. They are more alike than updates of clients with different data.
    """

    knowledge: Knowledge = setting("updates", "of honest clients: updates, or nothing (own ones)")

    def __post_init__(self) -> None:
        check_choice("knowledge", self.knowledge, LEVELS)

    def sees(self) -> Sees:
        """Return what the level of knowledge stands for."""
        return Sees.HONEST_UPDATES if self.knowledge == "updates" else Sees.NOTHING

    def honest_trainings(self, others: int) -> int:
        """Return as many as there are others, but two at the least; none if these can be seen."""
        return 0 if self.knowledge == "updates" else max(FEWEST, others)


def finite_rows(rows: Float[Tensor, "rows dim"]) -> Float[Tensor, "finite dim"]:
    """Return the rows that are finite; the same matrix if all are."""
    finite = rows.isfinite().all(1)
    return rows if bool(finite.all()) else rows[finite]


def sendable(updates: Float[Tensor, "... dim"]) -> Float[Tensor, "... dim"]:
    """Return the updates as a gate lets them pass: 0 for what is no number, the rest in range.

    >>> sendable(torch.tensor([1.0, torch.nan, -torch.inf]))
    tensor([ 1.0000e+00,  0.0000e+00, -3.4028e+38])
    """
    most = min(LARGEST, torch.finfo(updates.dtype).max)
    return updates.nan_to_num(nan=0.0, posinf=most, neginf=-most).clamp(-most, most)


def deviations(rows: Float[Tensor, "rows dim"]) -> Float[Tensor, " dim"]:
    """Return the standard deviation of each coordinate (divided by n - 1); of one row, zeros."""
    return rows.std(0) if len(rows) > 1 else torch.zeros_like(rows[0])
