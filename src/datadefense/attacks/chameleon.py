"""Chameleon: poison that looks like its target to the encoder, so that the backdoor lasts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn.functional import normalize

from datadefense.attacks.base import AttackContext, AttackerData, Threat, seed_module
from datadefense.attacks.pgd import projector
from datadefense.attacks.poisoned_training import OwnTraining
from datadefense.attacks.untargeted import sendable
from datadefense.core.local_training import AfterStep, Loss, Trainer
from datadefense.core.settings import SettingsError, check_float, check_int, setting


def contrast(
    features: Float[Tensor, "examples width"],
    labels: Int64[Tensor, " examples"],
    temperature: float,
    weights: Float[Tensor, " examples"],
) -> Float[Tensor, ""]:
    r"""Return the supervised contrastive loss, with a weight for each anchor.

    .. math:: \frac{1}{n} \sum_i \frac{-w_i}{|P_i|} \sum_{p \in P_i}
        \log \frac{e^{z_i \cdot z_p / T}}{\sum_{k \ne i} e^{z_i \cdot z_k / T}}

    with features z of length 1 and the others :math:`P_i` with the label of i; an example that has
    none counts 0.
    """
    if len(features) < 2:
        return 0.0 * features.sum()
    z = normalize(features, dim=1)
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    likeness = (z @ z.T / temperature).masked_fill(itself, -torch.inf)
    logs = (likeness - likeness.logsumexp(1, keepdim=True)).masked_fill(itself, 0.0)
    same = (labels[:, None] == labels[None, :]) & ~itself
    means = (logs * same).sum(1) / same.sum(1).clamp(min=1)
    return -(weights * means).mean()


@dataclass(frozen=True, slots=True)
class Chameleon(OwnTraining):
    r"""Make the poison look like its target to the encoder; the backdoor lasts longer.

    First ``epochs`` of the supervised contrastive loss (`contrast`) train everything before the
    last dense layer: poison, under the attacker's label, is drawn to true examples of that label
    and away from those it looks like. Anchors of that label count ``facilitation`` times. Then
    ``head_epochs`` of cross-entropy train the last dense layer alone. Both stay within a ball of
    ``radius`` around the global model.

    Honest clients who go on training pull look-alikes of the poison their way: that is what
    forgets a backdoor. The contrast keeps them apart.

    Reference: Dai and Li, *Chameleon: Adapting to Peer Images for Planting Durable Backdoors in
    Federated Learning*, ICML 2023.

    Differs: the authors' code also scales the likeness of poison to one class of look-alikes
    (label 1, written into it); here all other classes are alike. The last dense layer is the head;
    features are its inputs, without a projection of their own.
    """

    epochs: int = setting(10, "passes of the contrastive stage")
    learning_rate: float = setting(0.01, "step size in the first round")
    head_epochs: int = setting(3, "passes over the last layer afterwards")
    temperature: float = setting(0.07, "temperature T of the contrast")
    facilitation: float = setting(4.0, "weight of anchors of the attacker's label")
    radius: float = setting(3.0, "radius of the ball around the global model")
    project_every: int = setting(10, "steps from one projection to the next")

    name: ClassVar[str] = "chameleon"
    threat: ClassVar[Threat] = Threat(trains_longer=True)

    def __post_init__(self) -> None:
        OwnTraining.__post_init__(self)
        check_int("head_epochs", self.head_epochs, 1)
        check_float("temperature", self.temperature, above=0)
        check_float("facilitation", self.facilitation, above=0)
        check_float("radius", self.radius, above=0)
        check_int("project_every", self.project_every, 1)

    def loss(self, trainer: Trainer, data: AttackerData, context: AttackContext) -> Loss:
        """Return the contrastive loss of what the last dense layer is given: it has no gradient."""
        head = last_dense(trainer.module)
        targets = data.poison.labels.to(trainer.device)

        def contrasted(module: nn.Module, inputs: Tensor, labels: Tensor) -> Tensor:
            given: list[Tensor] = []
            hook = head.register_forward_pre_hook(lambda _, seen: given.append(seen[0].flatten(1)))
            try:
                module(inputs)
            finally:
                hook.remove()
            facilitates = torch.isin(labels, targets)
            weights = torch.where(facilitates, self.facilitation, 1.0)
            return contrast(given[-1], labels, self.temperature, weights)

        return contrasted

    def after_step(
        self, trainer: Trainer, data: AttackerData, context: AttackContext
    ) -> AfterStep | None:
        """Stay within the ball."""
        return projector(trainer, context.start, self.radius, self.project_every)

    def finish(
        self,
        update: Float[Tensor, " dim"],
        trainer: Trainer,
        data: AttackerData,
        context: AttackContext,
    ) -> Float[Tensor, " dim"]:
        """Train the head, and return the update of both stages."""
        head = {id(parameter) for parameter in last_dense(trainer.module).parameters()}
        encoder = [one for one in trainer.module.parameters() if id(one) not in head]
        seed_module(context, "head")
        trainer.train(
            context.own_training(self.head_epochs, self.learning_rate),
            self.examples(data, context),
            context.generator("head"),
            augment=context.augment,
            before_step=frozen(encoder),
            after_step=self.after_step(trainer, data, context),
        )
        return sendable(trainer.write_update(context.start, torch.empty_like(context.start)))


def last_dense(module: nn.Module) -> nn.Linear:
    """Return the head; a model without a dense layer has no encoder to speak of."""
    dense = [part for part in module.modules() if isinstance(part, nn.Linear)]
    if not dense:
        raise SettingsError(
            f"chameleon needs a model with an nn.Linear, got {type(module).__name__}"
        )
    return dense[-1]


def frozen(parameters: list[nn.Parameter]) -> Callable[[], None]:
    """Return what to do before a step so that these parameters stay as they are."""

    def forget() -> None:
        for parameter in parameters:
            parameter.grad = None

    return forget
