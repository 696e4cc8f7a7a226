"""Min-Sum: as far from all honest updates together as the outermost of them is."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import Threat
from datadefense.attacks.deviation import DIRECTIONS, Deviation, Direction
from datadefense.attacks.untargeted import Crafted, MaybeGuessing
from datadefense.core.settings import check_choice, setting

Bound = Literal["max", "min"]


@dataclass(frozen=True, slots=True)
class MinSum(MaybeGuessing):
    r"""Untargeted: step back as far from all together as one honest update is.

    All send :math:`\mu - \gamma p` with the largest :math:`\gamma` for which

    .. math:: \sum_i \lVert \mu - \gamma p - h_i \rVert^2 \le
        \max_i \sum_j \lVert h_i - h_j \rVert^2

    (or the least of these sums). As :math:`\sum_i (h_i - \mu) = 0`, the left-hand side is
    :math:`n \gamma^2 \lVert p \rVert^2 + S` and the sum of one i is
    :math:`n \lVert h_i - \mu \rVert^2 + S`, with the same S. So the sum of squares bounds no more
    than the distance from the mean, by that of the outermost (or innermost) honest update:

    .. math:: \gamma = \max_i \lVert h_i - \mu \rVert \, / \, \lVert p \rVert

    Reference: Shejwalkar and Houmansadr, *Manipulating the Byzantine*, NDSS 2021, section V.

    Differs: the paper has the greatest sum (``bound=max``, the default), the authors' notebooks the
    least (``bound=min``). They search, see `MinMax`; this is the exact solution.
    """

    direction: Direction = setting("std", "p: std, unit or sign")
    bound: Bound = setting("max", "max: the outermost honest update; min: the innermost")

    name: ClassVar[str] = "min-sum"
    threat: ClassVar[Threat] = Threat("what honest clients send; or nothing", scales=True)

    def __post_init__(self) -> None:
        MaybeGuessing.__post_init__(self)
        check_choice("direction", self.direction, DIRECTIONS)
        check_choice("bound", self.bound, ("max", "min"))

    def craft(
        self, honest: Float[Tensor, "honest dim"], own: Float[Tensor, "attackers dim"]
    ) -> Crafted:
        """Return the point furthest back."""
        line = Deviation.of(honest, self.direction)
        apart = line.apart.max() if self.bound == "max" else line.apart.min()
        gamma = math.sqrt(float(apart) / line.square) if 0 < line.square < math.inf else 0.0
        gamma = gamma if math.isfinite(gamma) else 0.0
        return line.at(gamma), {"gamma": gamma}
