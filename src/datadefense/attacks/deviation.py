"""Deviation: step back from the honest mean, along a direction that does not stand out."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.attacks.collusion import Params
from datadefense.attacks.oracle import mean
from datadefense.attacks.untargeted import deviations
from datadefense.kernels.sums import dots, norms, squared_norms

Direction = Literal["std", "unit", "sign"]
DIRECTIONS: tuple[Direction, ...] = ("std", "unit", "sign")


@dataclass(frozen=True, slots=True, eq=False)
class Deviation:
    r"""The line :math:`\mu - \gamma p` and where the honest updates lie beside it.

    Args:
        middle: the honest mean :math:`\mu`.
        along: the direction p.
        square: :math:`\lVert p \rVert^2`.
        apart: :math:`\lVert h_i - \mu \rVert^2` of each honest update.
        ahead: :math:`(h_i - \mu) \cdot p`.
    """

    middle: Params
    along: Params
    square: float
    apart: Float64[Tensor, " honest"]
    ahead: Float64[Tensor, " honest"]

    @classmethod
    def of(cls, honest: Float[Tensor, "honest dim"], direction: Direction) -> "Deviation":
        """Measure the honest updates along one of the directions."""
        middle = mean(honest)
        along = way(honest, middle, direction)
        differences = honest - middle
        return cls(
            middle,
            along,
            float(squared_norms(along[None])[0]),
            squared_norms(differences),
            dots(differences, along),
        )

    def at(self, gamma: float) -> Params:
        r"""Return :math:`\mu - \gamma p`."""
        return self.middle - gamma * self.along if gamma > 0 else self.middle


def way(
    honest: Float[Tensor, "honest dim"], middle: Params, direction: Direction
) -> Float[Tensor, " dim"]:
    """Return p; zeros where the honest updates have no such direction."""
    if direction == "std":
        return deviations(honest)
    if direction == "sign":
        return torch.sign(middle)
    length = float(norms(middle[None])[0])
    return middle / length if length > 0 else middle
