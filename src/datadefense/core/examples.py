"""Examples: inputs and their labels, an immutable pair of tensors."""

from dataclasses import dataclass

import torch
from jaxtyping import Int64, Shaped
from torch import Tensor

from datadefense.core.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Inputs of any shape and dtype with one integer label each."""

    inputs: Shaped[Tensor, "examples ..."]
    labels: Int64[Tensor, " examples"]

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.labels):
            raise InputError(
                f"one label an input: got {len(self.inputs)} inputs, {len(self.labels)} labels"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def join(self, other: "Examples") -> "Examples":
        """Return these examples with the others behind them."""
        return Examples(
            torch.cat([self.inputs, other.inputs]), torch.cat([self.labels, other.labels])
        )

    def take(self, index: Tensor) -> "Examples":
        """Return the examples at ``index``, in that order."""
        return Examples(self.inputs[index], self.labels[index])
