"""Fang's attack on trimmed mean and median: beyond the honest range, against the honest way."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import AttackContext, AttackerData, Threat
from datadefense.attacks.oracle import mean
from datadefense.attacks.untargeted import Crafted, MaybeGuessing, deviations
from datadefense.core.local_training import Trainer
from datadefense.core.settings import SettingsError, check_float, setting


@dataclass(frozen=True, slots=True)
class FangTrim(MaybeGuessing):
    r"""Untargeted: in each coordinate just beyond the honest range, against the honest way.

    With the honest least :math:`l_i`, greatest :math:`g_i` and mean :math:`\mu_i` of coordinate i,
    each attacker draws, evenly,

    .. math:: u_i \in \begin{cases} [l_i b^{\mp 1}, l_i] & \mu_i > 0, \\
        [g_i, g_i b^{\pm 1}] & \mu_i < 0, \end{cases}

    the exponent such that :math:`b` = ``factor`` leads further out (the upper one where the value
    is above 0). Of honest trainings of its own it knows neither; with their mean and deviation
    :math:`\sigma_i` it draws from :math:`\mu_i - [\mathrm{low}, \mathrm{high}]\,
    \sigma_i \mathrm{sign}(\mu_i)`. Where the honest updates cancel out, it sends 0.

    Reference: Fang et al., *Local Model Poisoning Attacks to Byzantine-Robust Federated Learning*,
    USENIX Security 2020, sections 4.3 and 4.4.

    Differs: the paper draws values of the model, this draws updates, so that a factor means the
    same wherever a parameter is. Copies of others take the far end (b = 2) or 3.5 deviations always
    (FLDetector): ``low`` = ``high`` = 3.5 does the latter.
    """

    factor: float = setting(2.0, "b: how far beyond the range, as a multiple of its end")
    low: float = setting(3.0, "least number of deviations, without knowledge")
    high: float = setting(4.0, "greatest number of deviations, without knowledge")

    name: ClassVar[str] = "fang-trim"
    threat: ClassVar[Threat] = Threat("what honest clients send; or nothing", scales=True)

    def __post_init__(self) -> None:
        MaybeGuessing.__post_init__(self)
        check_float("factor", self.factor, minimum=1)
        check_float("low", self.low, minimum=0)
        check_float("high", self.high, minimum=0)
        if self.low > self.high:
            raise SettingsError(f"low must be <= high, got {self.low:g} > {self.high:g}")

    def update(
        self, trainer: Trainer, data: AttackerData, context: AttackContext
    ) -> Float[Tensor, " dim"]:
        """Return this attacker's draws, from 0 to 1, for what is agreed upon."""
        draw = context.generator("even")
        return torch.rand(len(context.start), generator=draw, dtype=context.start.dtype)

    def craft(
        self, honest: Float[Tensor, "honest dim"], own: Float[Tensor, "attackers dim"]
    ) -> Crafted:
        """Return a row for each attacker, by its draws."""
        middle = mean(honest)
        signs = torch.sign(middle)
        if self.knowledge == "nothing":
            many = self.low + (self.high - self.low) * own
            return torch.where(signs == 0, 0.0, middle - many * deviations(honest) * signs), {}
        end = torch.where(signs > 0, honest.amin(0), honest.amax(0))
        outwards = end * signs <= 0
        far = torch.where(outwards, end * self.factor, end / self.factor)
        return torch.where(signs == 0, 0.0, end + own * (far - end)), {}
