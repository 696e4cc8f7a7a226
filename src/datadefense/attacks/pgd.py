"""Projected gradient descent: train on clean and poisoned data within a ball, maybe scaled."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import (
    Attack,
    AttackContext,
    AttackerData,
    Plain,
    Twist,
    counted,
    seed_module,
)
from datadefense.attacks.collusion import Plot, View
from datadefense.core.local_training import Sgd, Trainer
from datadefense.core.settings import check_float, check_int, setting
from datadefense.kernels.sums import norms


def project(update: Float[Tensor, " dim"], radius: float) -> Float[Tensor, " dim"]:
    r"""Return the nearest point of the ball: :math:`u \min(1, \epsilon / \lVert u \rVert)`."""
    length = float(norms(update[None])[0])
    return update * (radius / length) if length > radius else update


def projector(
    trainer: Trainer, start: Float[Tensor, " dim"], radius: float, every: int
) -> Callable[[int, bool], None]:
    """Return what to do after a step: project every so many steps, and at the end of an epoch."""
    update = torch.empty_like(start)

    def after_step(step: int, last: bool) -> None:
        if step % every == 0 or last:
            trainer.write_update(start, update)
            trainer.load(start + project(update, radius))

    return after_step


@dataclass(frozen=True, slots=True)
class Pgd(Attack):
    r"""Train on clean and poisoned data, projected onto a ball around the global model.

    .. math:: \lVert \phi_a - \bar\phi^{t-1} \rVert \le \epsilon \cdot d^{t-1}

    after every ``project_every``-th step (from the first) and at the end of each epoch; momentum is
    not reset. With ``replacement`` the update is scaled by n / n_a, the examples of the round over
    the attacker's, so that the plain average becomes the attacker's model; one whose claim is no
    count cannot scale by it, and sends the update as it is.

    Reference: Wang et al., *Attack of the Tails*, NeurIPS 2020; Bagdasaryan et al., AISTATS 2020.
    """

    epochs: int = setting(2, "passes over the attacker's examples")
    batch_size: int = setting(32, "examples a step")
    learning_rate: float = setting(0.02, "step size in the first round")
    decay: float = setting(1.0, "factor on the step size from one round to the next")
    momentum: float = setting(0.9, "share of the last step that is kept")
    weight_decay: float = setting(1e-4, "pull of the parameters towards zero")
    radius: float | None = setting(1.0, "radius epsilon of the ball; none: no ball (black box)")
    radius_decay: float = setting(1.0, "factor d on the radius from one round to the next")
    project_every: int = setting(10, "steps from one projection to the next")
    replacement: bool = setting(False, "scale the update so that it replaces the model")
    twist: Twist = setting(Plain(), "what is done otherwise")

    name: ClassVar[str] = "pgd"

    def __post_init__(self) -> None:
        self.training(1)
        if self.radius is not None:
            check_float("radius", self.radius, minimum=0)
        check_float("radius_decay", self.radius_decay, above=0, maximum=1)
        check_int("project_every", self.project_every, 1)

    def training(self, index: int) -> Sgd:
        """Return the attacker's own SGD in a round."""
        return Sgd(
            self.epochs,
            self.batch_size,
            self.learning_rate,
            self.momentum,
            self.weight_decay,
            self.decay,
        ).in_round(index)

    def update(
        self, trainer: Trainer, attacker_data: AttackerData, context: AttackContext
    ) -> Float[Tensor, " dim"]:
        """Train within the ball, then scale."""
        seed_module(context)
        start = context.start
        radius = self.twist.radius(trainer, attacker_data, context)
        if radius is None and self.radius is not None:
            radius = self.radius_in(context.index)
        trainer.load(start)
        trainer.train(
            self.training(context.index),
            self.twist.examples(attacker_data, context),
            context.generator("order"),
            augment=context.augment,
            loss=self.twist.loss(trainer, attacker_data, context),
            before_step=self.twist.before_step(trainer, context),
            after_step=None
            if radius is None
            else projector(trainer, start, radius, self.project_every),
        )
        update = torch.empty_like(start)
        trainer.write_update(start, update)
        update = self.twist.finish(update, trainer, attacker_data, context)
        if self.replacement and (own := counted(self.claim(attacker_data))):
            update *= context.num_examples / own
        return update

    def stand_ins(self, others: int) -> int:
        """Return how many honest trainings of its own the twist wants to see."""
        return self.twist.stand_ins(others)

    def collude(self, view: View) -> Plot | None:
        """Return what the twist has the attackers agree on."""
        return self.twist.collude(view)

    def radius_in(self, index: int) -> float:
        """Return the radius in a round."""
        return (self.radius or 0.0) * self.radius_decay ** (index - 1)
