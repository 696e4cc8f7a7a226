"""SoDa: train on the poison, held close to what the attacker's own honest training gave."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from datadefense.attacks.base import AttackContext, AttackerData, Threat, seed_module
from datadefense.attacks.lp import honest_update
from datadefense.attacks.poisoned_training import OwnTraining
from datadefense.attacks.untargeted import sendable
from datadefense.core.local_training import Loss, Trainer, plain_loss
from datadefense.core.settings import check_float, setting

TINY = 1e-12
"""Least length of a model that is divided by."""


@dataclass(frozen=True, slots=True)
class Soda(OwnTraining):
    r"""Train on the poison, close in length and angle to an honest training of one's own.

    With the model :math:`\theta_h` that the attacker's clean examples give, descend

    .. math:: L_{class} + w_d \lVert \theta - \theta_h \rVert
        + w_c \Bigl(1 - \frac{\theta \cdot \theta_h}{\lVert\theta\rVert \lVert\theta_h\rVert}\Bigr)

    from the global model (*self-reference*): nothing of other clients need be known.

    Reference: SoDa, MobiHoc 2025, whose poison is images of another data set, all with one label.
    What the poison is, and by what success is measured, is the task's here: that of
    ``digits-edge`` is of another data set.

    Differs: :math:`\theta` are the parameters that are trained; running statistics of norms are
    left out.
    """

    distance_weight: float = setting(0.1, "weight of the distance from the honest model, w_d")
    angle_weight: float = setting(100.0, "weight of one minus the cosine with it, w_c")

    name: ClassVar[str] = "soda"
    threat: ClassVar[Threat] = Threat(trains_longer=True)

    def __post_init__(self) -> None:
        OwnTraining.__post_init__(self)
        check_float("distance_weight", self.distance_weight, minimum=0)
        check_float("angle_weight", self.angle_weight, minimum=0)

    def loss(self, trainer: Trainer, data: AttackerData, context: AttackContext) -> Loss:
        """Train honestly first; return the loss with the price of being unlike that."""
        trained = [tensor for tensor in trainer.tensors if tensor.requires_grad]
        honest_update(trainer, data, context)
        honest = joined(trained).detach()
        length = torch.linalg.vector_norm(honest)
        seed_module(context)
        trainer.load(context.start)

        def self_referenced(module: nn.Module, inputs: Tensor, labels: Tensor) -> Tensor:
            theta = joined(trained)
            lengths = (torch.linalg.vector_norm(theta) * length).clamp(min=TINY)
            distance: Tensor = torch.linalg.vector_norm(theta - honest)
            unlike: Tensor = 1 - theta @ honest / lengths
            price = self.distance_weight * distance + self.angle_weight * unlike
            return plain_loss(module, inputs, labels) + price

        return self_referenced

    def finish(
        self,
        update: Float[Tensor, " dim"],
        trainer: Trainer,
        data: AttackerData,
        context: AttackContext,
    ) -> Float[Tensor, " dim"]:
        """Return the update as a gate lets it pass."""
        return sendable(update)


def joined(tensors: list[Tensor]) -> Float[Tensor, " size"]:
    """Return a copy of the tensors as one vector, differentiable in them."""
    return torch.cat([tensor.flatten() for tensor in tensors])
