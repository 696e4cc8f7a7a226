"""Two models that are compared: one that may have a backdoor, and one that is trusted."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

ToLogits = Callable[[Tensor], Tensor]
"""``to_logits(inputs) -> logits``: pixels are floats from 0 to 255, differentiable; or tokens."""
ROWS = 1000
"""Inputs that a model reads at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Models:
    """The suspect model and the trusted one, as functions."""

    suspect: ToLogits
    trusted: ToLogits

    def logits(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of both, without gradients."""
        parts = torch.split(inputs, ROWS)
        with torch.no_grad():
            suspect = torch.cat([self.suspect(part) for part in parts])
            trusted = torch.cat([self.trusted(part) for part in parts])
        return suspect, trusted

    def turned(self, inputs: Tensor, target: int) -> tuple[float, float]:
        """Return the shares of inputs that each calls the target."""
        suspect, trusted = (
            float((logits.argmax(1) == target).double().mean()) for logits in self.logits(inputs)
        )
        return suspect, trusted
