"""Projected gradient descent: train within a ball around the global model, maybe scaled."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import AttackContext, AttackerData, Threat
from datadefense.attacks.model_replacement import ModelReplacement
from datadefense.attacks.poisoned_training import OwnTraining
from datadefense.core.local_training import AfterStep, Trainer
from datadefense.core.settings import check_float, check_int, setting
from datadefense.kernels.sums import norms


def project(update: Float[Tensor, " dim"], radius: float) -> Float[Tensor, " dim"]:
    r"""Return the nearest point of the ball: :math:`u \min(1, \epsilon / \lVert u \rVert)`."""
    length = float(norms(update[None])[0])
    return update * (radius / length) if length > radius else update


def projector(
    trainer: Trainer, start: Float[Tensor, " dim"], radius: float, every: int
) -> AfterStep:
    """Return what to do after a step: project every so many steps, and at the end of an epoch."""
    update = torch.empty_like(start)

    def after_step(step: int, last: bool) -> None:
        if step % every == 0 or last:
            trainer.write_update(start, update)
            trainer.load(start + project(update, radius))

    return after_step


@dataclass(frozen=True, slots=True)
class Pgd(OwnTraining):
    r"""Train on clean and poisoned data within a ball around the global model.

    .. math:: \lVert \phi_a - \bar\phi^{t-1} \rVert \le \epsilon \cdot d^{t-1}

    after every ``project_every``-th step (from the first) and at the end of each epoch; momentum is
    not reset.

    Reference: Wang et al., *Attack of the Tails*, NeurIPS 2020.
    """

    radius: float = setting(1.0, "radius epsilon of the ball")
    radius_decay: float = setting(1.0, "factor d on the radius from one round to the next")
    project_every: int = setting(10, "steps from one projection to the next")

    name: ClassVar[str] = "pgd"
    threat: ClassVar[Threat] = Threat(trains_longer=True)

    def __post_init__(self) -> None:
        OwnTraining.__post_init__(self)
        check_float("radius", self.radius, minimum=0)
        check_ball(self.radius_decay, self.project_every)

    def after_step(
        self, trainer: Trainer, data: AttackerData, context: AttackContext
    ) -> AfterStep | None:
        """Return the projection onto the ball of this round."""
        radius = self.radius * self.radius_decay ** (context.index - 1)
        return projector(trainer, context.start, radius, self.project_every)


@dataclass(frozen=True, slots=True)
class PgdReplacement(ModelReplacement):
    r"""Train within a ball, then scale the update so that it replaces the model.

    As `Pgd`, and then as `ModelReplacement`.

    Reference: Wang et al., *Attack of the Tails*, NeurIPS 2020; Bagdasaryan et al., AISTATS 2020.
    """

    replacement_radius: float = setting(1.0, "radius epsilon of the ball, before the scaling")
    radius_decay: float = setting(1.0, "factor d on the radius from one round to the next")
    project_every: int = setting(10, "steps from one projection to the next")

    name: ClassVar[str] = "pgd-replacement"
    threat: ClassVar[Threat] = Threat("the round's number of examples", 1, True, scales=True)

    def __post_init__(self) -> None:
        ModelReplacement.__post_init__(self)
        check_float("replacement_radius", self.replacement_radius, minimum=0)
        check_ball(self.radius_decay, self.project_every)

    def after_step(
        self, trainer: Trainer, data: AttackerData, context: AttackContext
    ) -> AfterStep | None:
        """Return the projection onto the ball of this round."""
        radius = self.replacement_radius * self.radius_decay ** (context.index - 1)
        return projector(trainer, context.start, radius, self.project_every)


def check_ball(decay: float, every: int) -> None:
    """Check how a ball shrinks and how often it is kept."""
    check_float("radius_decay", decay, above=0, maximum=1)
    check_int("project_every", every, 1)
