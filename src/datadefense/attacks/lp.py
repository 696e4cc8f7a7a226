"""Layer-wise poisoning: the backdoor in the few layers that carry it, honest elsewhere."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from datadefense.attacks.base import AttackContext, AttackerData, Threat, seed_module
from datadefense.attacks.collusion import Params
from datadefense.attacks.poisoned_training import OwnTraining
from datadefense.attacks.untargeted import sendable
from datadefense.core.layout import Layout
from datadefense.core.local_training import Trainer
from datadefense.core.settings import check_float, setting


@dataclass(frozen=True, slots=True)
class Lp(OwnTraining):
    r"""Poison only the layers that the backdoor needs; be honest in the others.

    Train an honest update b and a poisoned one m. How much a layer matters is how much success m
    loses with that layer of b. In this order layers of m are put into b until it has
    ``tau`` times the success of m; what is sent is

    .. math:: u_l = \lambda\, m_l \text{ in these layers}, \qquad u_l = b_l \text{ in the others}

    with ``factor`` for :math:`\lambda`. Whole vectors then look honest, in length and angle.
    Success is the share of the attacker's own poison that gets its label.

    Reference: Zhuang et al., *Backdoor Federated Learning by Poisoning Backdoor-Critical Layers*,
    ICLR 2024.

    Differs: a layer is a module with all its tensors (a weight and its bias), not one tensor.
    :math:`\lambda` is a setting, 1 as in the authors' code; the paper adapts it to honest models
    that it guesses, and adds a mean of them. The variant that flips the layers is left out.
    """

    tau: float = setting(0.8, "share of the poisoned model's success that is wanted")
    factor: float = setting(1.0, "lambda: what the chosen layers are multiplied by")

    name: ClassVar[str] = "lp"
    threat: ClassVar[Threat] = Threat("the model's layers", trains_longer=True)

    def __post_init__(self) -> None:
        OwnTraining.__post_init__(self)
        check_float("tau", self.tau, minimum=0, maximum=1)
        check_float("factor", self.factor, above=0)

    def finish(
        self,
        update: Float[Tensor, " dim"],
        trainer: Trainer,
        data: AttackerData,
        context: AttackContext,
    ) -> Float[Tensor, " dim"]:
        """Return the honest update with the critical layers of the poisoned one."""
        honest = honest_update(trainer, data, context)

        def success(candidate: Params) -> float:
            trainer.load(context.start + candidate)
            return trainer.count_correct(data.poison) / max(1, len(data.poison))

        chosen = critical(update, honest, layers(trainer.layout), success, self.tau)
        return sendable(torch.where(chosen, self.factor * update, honest))


def honest_update(
    trainer: Trainer, data: AttackerData, context: AttackContext
) -> Float[Tensor, " dim"]:
    """Train as an honest client with the attacker's clean examples does."""
    seed_module(context, "honest")
    trainer.load(context.start)
    draw = context.generator("honest")
    trainer.train(context.training, data.clean, draw, augment=context.augment)
    return trainer.write_update(context.start, torch.empty_like(context.start))


def layers(layout: Layout) -> list[Bool[Tensor, " dim"]]:
    """Return which coordinates each layer has, in the model's order: one mask a module."""
    masks: dict[str, Tensor] = {}
    for slot in layout.slots:
        name = slot.name.rpartition(".")[0]
        mask = masks.setdefault(name, torch.zeros(layout.dim, dtype=torch.bool))
        mask[slot.start : slot.stop] = True
    return list(masks.values())


def critical(
    poisoned: Params,
    honest: Params,
    layers: Sequence[Bool[Tensor, " dim"]],
    success: Callable[[Params], float],
    tau: float,
) -> Bool[Tensor, " dim"]:
    """Return the coordinates of the layers that the backdoor needs; of equals, the first ones."""
    wanted = tau * success(poisoned)
    left = [success(torch.where(mask, honest, poisoned)) for mask in layers]
    order = sorted(range(len(layers)), key=lambda place: left[place])
    chosen = torch.zeros_like(honest, dtype=torch.bool)
    for place in order:
        if success(torch.where(chosen, poisoned, honest)) >= wanted:
            break
        chosen = chosen | layers[place]
    return chosen
