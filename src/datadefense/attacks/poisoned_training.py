"""Poisoned training: train on clean and poisoned data; what attacks that train have in common."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import Attack, AttackContext, AttackerData, seed_module
from datadefense.core.examples import Examples
from datadefense.core.local_training import AfterStep, Loss, Sgd, Trainer, plain_loss
from datadefense.core.settings import check_float, check_int, setting


@dataclass(frozen=True, slots=True)
class PoisonedTraining(Attack):
    """Train from the global model on some examples and send the difference.

    An attack that does something else at one of these steps overrides its method. Data, training,
    schedule and what is done to the update are independent choices.
    """

    def training(self, context: AttackContext) -> Sgd:
        """Return how the attacker trains in this round: as honest clients do."""
        return context.training

    def examples(self, data: AttackerData, context: AttackContext) -> Examples:
        """Return what to train on."""
        return data.mixed()

    def loss(self, trainer: Trainer, data: AttackerData, context: AttackContext) -> Loss:
        """Return what to descend; the module has the global parameters when this is called."""
        return plain_loss

    def before_step(self, trainer: Trainer, context: AttackContext) -> Callable[[], None] | None:
        """Return what to do to the gradients before each step."""
        return None

    def after_step(
        self, trainer: Trainer, data: AttackerData, context: AttackContext
    ) -> AfterStep | None:
        """Return what to do to the module after each step; called before the module is loaded."""
        return None

    def finish(
        self,
        update: Float[Tensor, " dim"],
        trainer: Trainer,
        data: AttackerData,
        context: AttackContext,
    ) -> Float[Tensor, " dim"]:
        """Return the update as it is sent."""
        return update

    def update(
        self, trainer: Trainer, data: AttackerData, context: AttackContext
    ) -> Float[Tensor, " dim"]:
        """Train, and make of it what is sent."""
        seed_module(context)
        after_step = self.after_step(trainer, data, context)
        trainer.load(context.start)
        trainer.train(
            self.training(context),
            self.examples(data, context),
            context.generator("order"),
            augment=context.augment,
            loss=self.loss(trainer, data, context),
            before_step=self.before_step(trainer, context),
            after_step=after_step,
        )
        update = trainer.write_update(context.start, torch.empty_like(context.start))
        return self.finish(update, trainer, data, context)


@dataclass(frozen=True, slots=True)
class OwnTraining(PoisonedTraining):
    """Poisoned training with passes and a step size of the attacker's own."""

    epochs: int = setting(5, "passes over the attacker's examples")
    learning_rate: float = setting(0.02, "step size in the first round")

    def __post_init__(self) -> None:
        check_int("epochs", self.epochs, 1)
        check_float("learning_rate", self.learning_rate, above=0)

    def training(self, context: AttackContext) -> Sgd:
        """Return how the attacker trains in this round."""
        return context.own_training(self.epochs, self.learning_rate)
