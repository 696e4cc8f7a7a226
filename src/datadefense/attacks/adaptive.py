"""An attacker who knows the defense: it trains to look honest on a guess of the defense set."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from datadefense.attacks.base import AttackContext, AttackerData, Threat
from datadefense.attacks.pgd import projector
from datadefense.attacks.poisoned_training import OwnTraining
from datadefense.core.examples import Examples
from datadefense.core.local_training import AfterStep, Loss, Trainer, plain_loss
from datadefense.core.settings import SettingsError, check_float, check_int, setting
from datadefense.kernels.sums import norms

FLOOR = 0.1
"""Nats added to a loss before something is divided by it, as the defense does."""
LONGEST = 5.0
"""Length to which a gradient is cut."""


def guess_on(trainer: Trainer, data: AttackerData) -> tuple[Examples, Examples]:
    """Return the guess of the defense set, clean and poisoned, where the trainer computes."""
    if data.guess is None:
        raise SettingsError("an attacker who knows the defense needs a guess of the defense set")
    clean, poison = (
        Examples(part.inputs.to(trainer.device), part.labels.to(trainer.device))
        for part in data.guess
    )
    return clean, poison


@dataclass(frozen=True, slots=True)
class Adaptive(OwnTraining):
    r"""Train to look honest on a guess of the server's data, with as much backdoor as passes.

    .. math::
        L = L_{class} + w \left( \frac{[L_c(\phi) - L_c(\bar\phi)]_+}{L_c(\bar\phi) + 0.1}
        + \frac{[(1 - \tau) L_p(\bar\phi) - L_p(\phi)]_+}{L_p(\bar\phi) + 0.1} \right)

    with the cross-entropy :math:`L_c` of the guessed clean and :math:`L_p` of the guessed poisoned
    examples (under the attacker's label: a model that learned the backdoor has a small one). Both
    are two of `datadefense.defenses.datadefense.penalties`; the third, distance, is kept by a
    ball of ``reach`` times the update that the attacker would send if it were honest. Nothing is
    scaled. The guess is the attacker's own data of the same kind; it does not see the server's.
    """

    weight: float = setting(10.0, "weight w of looking honest")
    tolerance: float = setting(0.2, "share tau of the poison's loss that it may remove")
    reach: float = setting(1.5, "radius of its ball, in honest updates")
    project_every: int = setting(10, "steps from one projection to the next")

    name: ClassVar[str] = "adaptive"
    threat: ClassVar[Threat] = Threat(
        "the kind of defense, and data like the server's", trains_longer=True
    )
    revision: ClassVar[int] = 3

    def __post_init__(self) -> None:
        OwnTraining.__post_init__(self)
        check_float("weight", self.weight, minimum=0)
        check_float("tolerance", self.tolerance, minimum=0, maximum=1)
        check_float("reach", self.reach, above=0)
        check_int("project_every", self.project_every, 1)

    def holdings(self, data: AttackerData, usual: int) -> AttackerData:
        """Keep a third of the poison as a guess of what the server holds."""
        return data.with_guess()

    def after_step(
        self, trainer: Trainer, data: AttackerData, context: AttackContext
    ) -> AfterStep | None:
        """Stay within the greatest length that does not stand out: train honestly and measure."""
        trainer.load(context.start)
        draw = context.generator("imitation")
        trainer.train(context.training, data.clean, draw, augment=context.augment)
        honest = trainer.write_update(context.start, torch.empty_like(context.start))
        radius = self.reach * float(norms(honest[None])[0])
        return projector(trainer, context.start, radius, self.project_every)

    def loss(self, trainer: Trainer, data: AttackerData, context: AttackContext) -> Loss:
        """Return the loss with the price of being noticed."""
        clean, poison = guess_on(trainer, data)
        trainer.module.eval()
        with torch.no_grad():
            before_clean = cross_entropy(trainer.module(clean.inputs), clean.labels)
            before_poison = cross_entropy(trainer.module(poison.inputs), poison.labels)

        def honest_looking(module: nn.Module, inputs: Tensor, labels: Tensor) -> Tensor:
            clean_loss = cross_entropy(module(clean.inputs), clean.labels)
            poison_loss = cross_entropy(module(poison.inputs), poison.labels)
            worse = (clean_loss - before_clean).relu() / (before_clean + FLOOR)
            least = (1 - self.tolerance) * before_poison
            learned = (least - poison_loss).relu() / (before_poison + FLOOR)
            return plain_loss(module, inputs, labels) + self.weight * (worse + learned)

        return honest_looking

    def before_step(self, trainer: Trainer, context: AttackContext) -> Callable[[], None] | None:
        """Keep the gradient short: the price of being noticed is steep, steps would overshoot."""
        parameters = list(trainer.module.parameters())

        def shorten() -> None:
            nn.utils.clip_grad_norm_(parameters, LONGEST)

        return shorten
