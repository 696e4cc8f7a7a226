"""Gaussian noise in place of an update."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import AttackContext, AttackerData, Sees, Threat
from datadefense.attacks.collusion import Plot, View
from datadefense.attacks.oracle import mean
from datadefense.attacks.untargeted import Crafted, Untargeted, deviations
from datadefense.core.local_training import Trainer
from datadefense.core.settings import check_choice, check_float, setting

Spread = Literal["fixed", "honest"]


@dataclass(frozen=True, slots=True)
class Gaussian(Untargeted):
    r"""Untargeted: noise in place of an update.

    ``fixed``: each attacker draws from :math:`N(0, \mathrm{deviation}^2)` and needs to know
    nothing: the failing client of Blanchard et al., which any robust rule should stop. ``honest``:
    from :math:`N(\mu_i, \sigma_i^2)` with the honest mean and deviation of each coordinate, as
    long as an honest update and without its sense (Fang et al.).

    Reference: Blanchard et al., *Machine Learning with Adversaries*, NeurIPS 2017, section 5
    (deviation 200); Fang et al., USENIX Security 2020 (the Gaussian attack that they compare with).
    """

    spread: Spread = setting("fixed", "of the noise: fixed, or honest (as honest updates have)")
    deviation: float = setting(200.0, "standard deviation of the fixed noise")

    name: ClassVar[str] = "gaussian"
    threat: ClassVar[Threat] = Threat("nothing; or what honest clients send", scales=True)

    def __post_init__(self) -> None:
        check_choice("spread", self.spread, ("fixed", "honest"))
        check_float("deviation", self.deviation, above=0)

    def sees(self) -> Sees:
        """Return what the spread is learned from."""
        return Sees.NOTHING if self.spread == "fixed" else Sees.HONEST_UPDATES

    def update(
        self, trainer: Trainer, data: AttackerData, context: AttackContext
    ) -> Float[Tensor, " dim"]:
        """Return the noise; of the honest spread, with a deviation of 1 for the time being."""
        draw = context.generator("noise")
        noise = torch.randn(len(context.start), generator=draw, dtype=context.start.dtype)
        return self.deviation * noise if self.spread == "fixed" else noise

    def agree(self, view: View) -> Plot | None:
        """Give the noise the honest spread; fixed noise is each attacker's own."""
        return None if self.spread == "fixed" else Untargeted.agree(self, view)

    def craft(
        self, honest: Float[Tensor, "honest dim"], own: Float[Tensor, "attackers dim"]
    ) -> Crafted:
        """Return a row for each attacker."""
        return mean(honest) + deviations(honest) * own, {}
