"""Min-Max: as far from the honest mean as two honest updates are from each other."""

import math
from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import Threat
from datadefense.attacks.deviation import DIRECTIONS, Deviation, Direction
from datadefense.attacks.untargeted import Crafted, MaybeGuessing
from datadefense.core.settings import check_choice, setting
from datadefense.kernels.distances import squared_distances


@dataclass(frozen=True, slots=True)
class MinMax(MaybeGuessing):
    r"""Untargeted: step back as far as honest updates are apart at the most.

    All send :math:`\mu - \gamma p` with the largest :math:`\gamma` for which

    .. math:: \max_i \lVert \mu - \gamma p - h_i \rVert \le \max_{ij} \lVert h_i - h_j \rVert

    p is the deviation of each coordinate (``std``), the mean's direction (``unit``) or its signs
    (``sign``). Each side is quadratic in :math:`\gamma`: with
    :math:`a_i = (h_i - \mu) \cdot p`, :math:`d_i = \lVert h_i - \mu \rVert^2` and B the square of
    the right-hand side,

    .. math:: \gamma = \min_i \frac{-a_i + \sqrt{a_i^2 + \lVert p \rVert^2 (B - d_i)}}
        {\lVert p \rVert^2}

    Reference: Shejwalkar and Houmansadr, *Manipulating the Byzantine: Optimizing Model Poisoning
    Attacks and Defenses for Federated Learning*, NDSS 2021, section V.

    Differs: the authors search from 10 (50 in their notebooks) in halved steps, which also bounds
    :math:`\gamma`; this is the exact solution. Without knowledge the stand-ins are trained by one
    attacker, not one by each.
    """

    direction: Direction = setting("std", "p: std, unit or sign")

    name: ClassVar[str] = "min-max"
    threat: ClassVar[Threat] = Threat("what honest clients send; or nothing", scales=True)

    def __post_init__(self) -> None:
        MaybeGuessing.__post_init__(self)
        check_choice("direction", self.direction, DIRECTIONS)

    def craft(
        self, honest: Float[Tensor, "honest dim"], own: Float[Tensor, "attackers dim"]
    ) -> Crafted:
        """Return the point furthest back."""
        line = Deviation.of(honest, self.direction)
        gamma = furthest(line, float(squared_distances(honest).max()))
        return line.at(gamma), {"gamma": gamma}


def furthest(line: Deviation, bound: float) -> float:
    """Return the largest gamma within the squared distance ``bound`` of all; 0 if p is no way."""
    if not 0 < line.square < math.inf:
        return 0.0
    inside = line.ahead.square() + line.square * (bound - line.apart)
    steps = (inside.clamp(min=0).sqrt() - line.ahead) / line.square
    step = float(steps.min())
    return max(0.0, step) if math.isfinite(step) else 0.0
