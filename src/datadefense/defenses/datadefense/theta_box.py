"""The box of theta: the range of each penalty's weight, the start in it and steps within it."""

from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor

Theta = Float64[Tensor, " 3"]


@dataclass(frozen=True, slots=True, eq=False)
class ThetaBox:
    """The least and the greatest theta, one value for each penalty."""

    low: Theta
    high: Theta

    @classmethod
    def of(cls, *ranges: tuple[float, float]) -> "ThetaBox":
        """Make a box of a least and a greatest value for each penalty."""
        lows, highs = zip(*ranges, strict=True)
        return cls(
            torch.tensor(lows, dtype=torch.float64), torch.tensor(highs, dtype=torch.float64)
        )

    def draw(self, generator: torch.Generator) -> Theta:
        """Draw theta uniformly."""
        share = torch.rand(len(self.low), generator=generator, dtype=torch.float64)
        return self.low + (self.high - self.low) * share

    def step(self, theta: Theta, gradient: Theta, rate: float) -> Theta:
        """Return theta after one step of fixed length, clipped to the box.

        The length is ``rate`` in units of the box's sides, however long the gradient is: so one
        wild gradient cannot push theta to where it no longer learns. A gradient that is 0 or not
        finite moves nothing.
        """
        width = self.high - self.low
        scaled = gradient * width
        length = float(scaled.norm())
        if not 0 < length < torch.inf:
            return theta
        return torch.clamp(theta - rate * width * scaled / length, self.low, self.high)
