"""How a model is computed: the precision of its passes, and the memory format of its images.

Neither changes what is computed, both change the last bits. Parameters, momentum, updates and
everything that is done with updates are float32 whatever is said here.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

Precision = Literal["float32", "bf16"]
MemoryFormat = Literal["contiguous", "channels_last"]

WIDE = 256
"""Output channels from which on `Compute.usual` takes the default format."""


@dataclass(frozen=True, slots=True)
class Compute:
    """Precision and memory format of a model's passes.

    Args:
        precision: ``float32``, or ``bf16``: convolutions and products of matrices take factors of 8
            bits of precision and add in float32 (PyTorch's autocast). Logits are float32 again.
        memory_format: how images and filters lie in memory.
    """

    precision: Precision = "float32"
    memory_format: MemoryFormat = "contiguous"

    @classmethod
    def usual(cls, module: nn.Module) -> "Compute":
        """Return float32, and channels last for a net of narrow convolutions only.

        Where nobody has measured: a LeNet is faster so on all processors that we have met, a full
        VGG-9 on some. A run of the simulator measures (`datadefense.runs.compute_choice`).
        """
        return cls(memory_format="channels_last" if is_narrow(module) else "contiguous")

    def passes(self, device: str = "cpu") -> AbstractContextManager[object]:
        """Return the context in which to call a module."""
        if self.precision == "float32":
            return nullcontext()
        return torch.autocast(device, dtype=torch.bfloat16)

    def arrange(self, tensor: Tensor) -> Tensor:
        """Return images or filters in the memory format; anything else as it is."""
        return channels_last(tensor) if self.memory_format == "channels_last" else tensor

    def arrange_module(self, module: nn.Module) -> nn.Module:
        """Put a module's filters into the memory format, in place; its logits are float32."""
        if self.memory_format == "channels_last":
            module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if self.precision != "float32":
            module.register_forward_hook(_float32)
        return module


def _float32(_module: nn.Module, _inputs: object, logits: Tensor) -> Tensor:
    """Return logits in which a loss does not lose the small probabilities."""
    return logits.float()


def is_narrow(module: nn.Module) -> bool:
    """Say whether the module has convolutions, all of fewer than `WIDE` output channels."""
    widths = [part.out_channels for part in module.modules() if isinstance(part, nn.Conv2d)]
    return bool(widths) and max(widths) < WIDE


def channels_last(tensor: Tensor) -> Tensor:
    """Return images or their filters in the channels-last format, anything else as it is.

    Cloned, not made contiguous: with one channel every order of the memory is both formats, and
    only a clone has the strides by which a convolution recognises this one.
    """
    if tensor.ndim != 4:
        return tensor
    return tensor.clone(memory_format=torch.channels_last)
