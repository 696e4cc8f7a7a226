"""Constrain-and-scale: train to stay close to the global model, then scale the update."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from datadefense.attacks.base import AttackContext, AttackerData, Threat
from datadefense.attacks.model_replacement import ModelReplacement
from datadefense.core.local_training import Loss, Trainer, plain_loss
from datadefense.core.settings import check_float, setting


@dataclass(frozen=True, slots=True)
class ConstrainAndScale(ModelReplacement):
    r"""Train to stay close to the global model too, then scale the update.

    Descend :math:`\alpha L_{class} + (1 - \alpha) \lVert \phi - \bar\phi \rVert^2`.

    The update is then scaled so that it replaces the model.

    Reference: Bagdasaryan et al., *How To Backdoor Federated Learning*, AISTATS 2020, with the
    distance as the anomaly to be kept small.
    """

    alpha: float = setting(0.7, "share of the loss that is about the examples")

    name: ClassVar[str] = "constrain-and-scale"
    threat: ClassVar[Threat] = Threat(
        "the round's number of examples", trains_longer=True, scales=True
    )

    def __post_init__(self) -> None:
        ModelReplacement.__post_init__(self)
        check_float("alpha", self.alpha, above=0, maximum=1)

    def loss(self, trainer: Trainer, data: AttackerData, context: AttackContext) -> Loss:
        """Return the mixed loss."""
        start = [tensor.detach().clone() for tensor in trainer.tensors]

        def mixed(module: nn.Module, inputs: Tensor, labels: Tensor) -> Tensor:
            moved = torch.stack(
                [(t - s).square().sum() for t, s in zip(trainer.tensors, start, strict=True)]
            ).sum()
            return self.alpha * plain_loss(module, inputs, labels) + (1 - self.alpha) * moved

        return mixed
