"""A module as a function of its parameter vector: to evaluate it, and to train it on the server."""

import copy
import threading
from collections.abc import Mapping

from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _NormBase

from datadefense.core.buffers import smallest_batch
from datadefense.core.compute import Compute
from datadefense.core.layout import Layout

__all__ = ["Layout", "Learning", "Predictor", "predictor"]


class Predictor:
    """A module as a function of its parameter vector, in evaluation mode; a `Predict`.

    The module is copied, so later training of it changes nothing here; kept buffers have the
    values that they have now. ``compute`` says how the passes are computed (`Compute.usual`). The
    logits are differentiable in what is learned; what is carried has a gradient of zero. A running
    variance below 0 is taken as 0: no vector makes the square root of a negative number.
    """

    def __init__(self, module: nn.Module, layout: Layout, compute: Compute | None = None) -> None:
        self.layout = layout
        self.compute = compute or Compute.usual(module)
        self._frozen = copy.deepcopy(module).eval().requires_grad_(False)
        self._by_thread = threading.local()

    def __call__(self, params: Float[Tensor, " dim"], inputs: Tensor) -> Tensor:
        """Return the logits; several threads may call at once."""
        return self._logits(self._module(), params, inputs, {})

    def _module(self) -> nn.Module:
        """Return this thread's own copy of the module: while it computes, it has the parameters."""
        module: nn.Module | None = getattr(self._by_thread, "module", None)
        if module is None:
            module = self._by_thread.module = copy.deepcopy(self._frozen)
        return module

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_by_thread"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._by_thread = threading.local()

    def learning(self, params: Float[Tensor, " dim"]) -> "Learning":
        """Return the same module for training that begins with ``params``."""
        return Learning(self, params)

    def _logits(
        self,
        module: nn.Module,
        params: Float[Tensor, " dim"],
        inputs: Tensor,
        buffers: Mapping[str, Tensor],
    ) -> Tensor:
        """Return the logits of the module with these parameters and, in their place, buffers."""
        tensors = self.layout.unflatten(params)
        for slot in self.layout.slots:
            if slot.carried:
                value = tensors[slot.name].detach()
                tensors[slot.name] = value.clamp(min=0) if slot.is_variance else value
        tensors |= buffers
        tensors |= {a: tensors[name] for a, name in self.layout.aliases if name in tensors}
        tensors = {name: self.compute.arrange(tensor) for name, tensor in tensors.items()}
        with self.compute.passes():
            logits: Tensor = functional_call(module, tensors, (self.compute.arrange(inputs),))
        return logits if self.compute.precision == "float32" else logits.float()


class Learning:
    """A module as a function of its vector while it is trained: its norms learn as a client's do.

    A BatchNorm layer normalises by the batch and moves its running statistics, which are in memory
    of their own until `write_statistics`. All other layers stay in evaluation mode: without
    such norms the logits are those of the `Predictor`, to the bit.
    """

    def __init__(self, predictor: Predictor, params: Float[Tensor, " dim"]) -> None:
        self._predictor = predictor
        self._module = copy.deepcopy(predictor._frozen)
        for part in self._module.modules():
            if isinstance(part, _NormBase):
                part.train()
        self.smallest_batch = smallest_batch(self._module)
        tensors = predictor.layout.unflatten(params.detach().clone())
        self._buffers = {
            name: tensors.get(name, buffer) for name, buffer in self._module.named_buffers()
        }
        self._carried = [
            slot for slot in predictor.layout.slots if slot.carried and slot.name in self._buffers
        ]

    def __call__(self, params: Float[Tensor, " dim"], inputs: Tensor) -> Tensor:
        """Return the logits of a batch; its statistics are taken in."""
        return self._predictor._logits(self._module, params, inputs, self._buffers)

    def write_statistics(self, params: Float[Tensor, " dim"]) -> None:
        """Write the carried buffers, as training has left them, into the vector."""
        for slot in self._carried:
            params[slot.start : slot.stop].copy_(self._buffers[slot.name].reshape(-1))


def predictor(module: nn.Module, layout: Layout, compute: Compute | None = None) -> Predictor:
    """Return the module as a function of its parameter vector, in evaluation mode."""
    return Predictor(module, layout, compute)
