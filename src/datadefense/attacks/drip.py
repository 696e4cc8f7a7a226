"""Drip: attackers who know the defense, and stay within its limits in every round."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from datadefense.attacks.adaptive import FLOOR, Adaptive, guess_on
from datadefense.attacks.base import AttackContext, AttackerData, Threat
from datadefense.core.examples import Examples
from datadefense.core.local_training import Loss, Trainer
from datadefense.core.settings import check_float, setting


@dataclass(frozen=True, slots=True)
class Drip(Adaptive):
    r"""Adaptive in every round, and within the hold's limit if it knows the slack.

    To the loss of `Adaptive` a third price is added,

    .. math:: w \frac{[S(\phi) - S(\phi_0) - \mathrm{slack}]_+}{S(\phi_0) + \mathrm{slack} + 0.1}

    with S the mean probability that a model gives the labels of the guessed poison, and
    :math:`\phi_0` the model before the first round: what
    `datadefense.defenses.datadefense.hold` limits. The other two prices are shares of a loss,
    about 1 where all is learned; this one is a share of what may be known, so that a step beyond
    the limit costs as much as the classes could gain by it. Below the limit it is 0 and the
    attacker is `Adaptive`, as it is with a slack of 1. One that keeps its own model at the
    hold's slack has almost no backdoor to send: the hold has then worked without acting.
    """

    slack: float = setting(
        1.0, "poison's probability above the first model's, at most; 1: no limit"
    )

    name: ClassVar[str] = "drip"
    threat: ClassVar[Threat] = Threat(
        "the kind of defense, and data like the server's", trains_longer=True
    )
    revision: ClassVar[int] = 1

    def __post_init__(self) -> None:
        Adaptive.__post_init__(self)
        check_float("slack", self.slack, minimum=0, maximum=1)

    def loss(self, trainer: Trainer, data: AttackerData, context: AttackContext) -> Loss:
        """Return the loss with the price of being noticed in the round and over all rounds."""
        if self.slack >= 1:
            return Adaptive.loss(self, trainer, data, context)
        _, poison = guess_on(trainer, data)
        trainer.load(context.first)
        trainer.module.eval()
        with torch.no_grad():
            first = float(known(trainer.module, poison))
        trainer.load(context.start)
        in_the_round = Adaptive.loss(self, trainer, data, context)
        limit = first + self.slack

        def patient(module: nn.Module, inputs: Tensor, labels: Tensor) -> Tensor:
            beyond = (known(module, poison) - limit).relu() / (limit + FLOOR)
            return in_the_round(module, inputs, labels) + self.weight * beyond

        return patient


def known(module: nn.Module, poison: Examples) -> Tensor:
    """Return what a model knows of the poison: the mean probability of its labels."""
    logits: Tensor = module(poison.inputs)
    return logits.softmax(1).gather(1, poison.labels[:, None]).mean()
