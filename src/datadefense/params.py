"""Parameters as one vector: the layout that maps a module or a state dict to [dim] and back.

Buffers (BatchNorm's running statistics, counters) are not parameters: a client does not learn
them by descent, and a distance or a norm over them means nothing. What happens to them is the
caller's choice, `BufferPolicy`, and never silent:

- ``"refuse"`` (default): a model with buffers is an error that names them;
- ``"keep"``: buffers stay as the server has them, and those that clients send are ignored;
- ``"aggregate"``: floating buffers become part of the vector like parameters (what most federated
  frameworks do), variances staying >= 0; integer ones stay as the server has them.
"""

import copy
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

from datadefense.server import Predict

WIDE = 256
"""Output channels from which on a convolution is not slower in PyTorch's default format."""
BufferPolicy = Literal["refuse", "keep", "aggregate"]
BATCH_NORM_BUFFERS = ("running_mean", "running_var", "num_batches_tracked")
"""Last parts of names by which buffers are known in a plain state dict."""


class UnhandledBuffersError(ValueError):
    """A model holds buffers and the policy does not say what to do with them."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Where one tensor lies in the vector: ``vector[start:stop].view(shape)``."""

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Names, shapes and places of a model's tensors in its parameter vector.

    Args:
        slots: the tensors of the vector, in order.
        kept: names of buffers that are not part of the vector.
        aliases: further names of tied tensors, as (alias, name of its slot).
    """

    slots: tuple[Slot, ...]
    kept: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()

    @property
    def dim(self) -> int:
        """Length of the vector."""
        return self.slots[-1].stop if self.slots else 0

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of the vector: float64 if any tensor is, else float32."""
        wide = any(slot.dtype == torch.float64 for slot in self.slots)
        return torch.float64 if wide else torch.float32

    @classmethod
    def of_module(cls, module: nn.Module, buffers: BufferPolicy = "refuse") -> "Layout":
        """Return the layout of a module's parameters, in the module's own order."""
        named = dict(module.named_parameters())
        first = {id(parameter): name for name, parameter in named.items()}
        aliases = tuple(
            (name, first[id(parameter)])
            for name, parameter in module.named_parameters(remove_duplicate=False)
            if first[id(parameter)] != name
        )
        state = module.state_dict()
        stored = {name: b for name, b in module.named_buffers() if name in state}
        once = {id(buffer): name for name, buffer in stored.items()}
        aliases += tuple(
            (name, once[id(buffer)])
            for name, buffer in module.named_buffers(remove_duplicate=False)
            if once.get(id(buffer), name) != name
        )
        return cls._build({**named, **stored}, list(stored), buffers, aliases)

    @classmethod
    def of_state_dict(
        cls,
        state: Mapping[str, Tensor],
        buffers: BufferPolicy = "refuse",
        buffer_names: Collection[str] = (),
    ) -> "Layout":
        """Return the layout of a state dict.

        A state dict does not say which of its tensors are buffers. Taken as such: the names
        given, names that end like BatchNorm's, and whatever is not floating.
        """
        found = [
            name
            for name, tensor in state.items()
            if name in buffer_names
            or name.rsplit(".", 1)[-1] in BATCH_NORM_BUFFERS
            or not tensor.is_floating_point()
        ]
        return cls._build(state, found, buffers, ())

    @classmethod
    def _build(
        cls,
        tensors: Mapping[str, Tensor],
        buffer_names: Collection[str],
        policy: BufferPolicy,
        aliases: tuple[tuple[str, str], ...],
    ) -> "Layout":
        if policy not in get_args(BufferPolicy):
            raise ValueError(f"buffers must be one of {get_args(BufferPolicy)}, got {policy!r}")
        if buffer_names and policy == "refuse":
            raise UnhandledBuffersError(
                f"the model has {len(buffer_names)} buffers ({_shorten(buffer_names)}): clients do "
                "not learn them by descent, so no defense can judge them. Choose buffers='keep' "
                "(the server's stay) or buffers='aggregate' (floating ones join the vector), or "
                "use a norm without running statistics, such as GroupNorm"
            )
        slots: list[Slot] = []
        kept: list[str] = []
        start = 0
        for name, tensor in tensors.items():
            joins = policy == "aggregate" and tensor.is_floating_point()
            if name in buffer_names and not joins:
                kept.append(name)
                continue
            if not tensor.is_floating_point():
                raise ValueError(f"parameter {name!r} must be floating, got {tensor.dtype}")
            stop = start + tensor.numel()
            slots.append(Slot(name, tuple(tensor.shape), tensor.dtype, start, stop))
            start = stop
        if start == 0:
            raise ValueError("the model has no parameters")
        return cls(tuple(slots), tuple(kept), aliases)

    def mismatch(self, tensors: Mapping[str, Tensor]) -> str | None:
        """Say in one line why ``tensors`` do not fit this layout; None if they do.

        Kept buffers and aliases may be there or not.
        """
        names = {slot.name for slot in self.slots}
        optional = {*self.kept, *(alias for alias, _ in self.aliases)}
        if missing := [slot.name for slot in self.slots if slot.name not in tensors]:
            return f"missing tensors: {_shorten(missing)}"
        if extra := [name for name in tensors if name not in names and name not in optional]:
            return f"unknown tensors: {_shorten(extra)}"
        for slot in self.slots:
            tensor = tensors[slot.name]
            if tuple(tensor.shape) != slot.shape:
                return f"{slot.name} has shape {tuple(tensor.shape)}, expected {slot.shape}"
            if tensor.dtype != slot.dtype:
                return f"{slot.name} has dtype {tensor.dtype}, expected {slot.dtype}"
        return None

    def flatten(
        self,
        tensors: Mapping[str, Tensor],
        out: Float[Tensor, " dim"] | None = None,
        less: Float[Tensor, " dim"] | None = None,
    ) -> Float[Tensor, " dim"]:
        """Copy the tensors into one vector (into ``out`` if given): one pass, no gradient.

        With ``less`` the vector is the difference from it.
        """
        if problem := self.mismatch(tensors):
            raise ValueError(problem)
        vector = torch.empty(self.dim, dtype=self.dtype) if out is None else out
        for slot in self.slots:
            part = slice(slot.start, slot.stop)
            values = tensors[slot.name].detach().reshape(-1)
            if less is None:
                vector[part].copy_(values)
            else:
                torch.sub(values.to(vector.dtype), less[part], out=vector[part])
        return vector

    def unflatten(self, vector: Float[Tensor, " dim"]) -> dict[str, Tensor]:
        """Return the named tensors as views of ``vector``, differentiable in it.

        A tensor whose dtype is not the vector's (float16, bfloat16) is a converted copy.
        """
        if vector.shape != (self.dim,):
            raise ValueError(f"expected a vector of shape ({self.dim},), got {tuple(vector.shape)}")
        pieces = torch.split(vector, [slot.stop - slot.start for slot in self.slots])
        tensors = {
            slot.name: piece.view(slot.shape).to(slot.dtype)
            for slot, piece in zip(self.slots, pieces, strict=True)
        }
        return tensors | {a: tensors[name] for a, name in self.aliases if name in tensors}

    def settle(self, vector: Float[Tensor, " dim"]) -> Float[Tensor, " dim"] | None:
        """Return the vector as a model can hold it; None if that is not finite.

        A value that is finite in the vector may not be in a float16 tensor. Variances among
        aggregated buffers are kept at 0 or above, whatever clients sent.
        """
        variances = [slot for slot in self.slots if slot.name.endswith("running_var")]
        if variances:
            vector = vector.clone()
            for slot in variances:
                vector[slot.start : slot.stop].clamp_(min=0)
        for slot in self.slots:
            if not bool(vector[slot.start : slot.stop].to(slot.dtype).isfinite().all()):
                return None
        return vector

    def bind(self, module: nn.Module) -> Float[Tensor, " dim"]:
        """Move the module's parameters into one vector and return it, without a copy ever after.

        The parameters become views of the vector: training the module writes the vector, and
        writing the vector changes the module.
        """
        if any(slot.dtype != self.dtype for slot in self.slots):
            raise ValueError(f"bind needs every tensor in {self.dtype}; use flatten instead")
        tensors = dict(module.named_parameters()) | dict(module.named_buffers())
        vector = self.flatten({slot.name: tensors[slot.name] for slot in self.slots})
        for name, view in self.unflatten(vector).items():
            if name in tensors:
                tensors[name].data = view
        return vector


def predictor(module: nn.Module, layout: Layout) -> Predict:
    """Return the module as a function of its parameter vector, in evaluation mode.

    The module is copied, so later training of it changes nothing here; kept buffers have the
    values that they have now. Narrow convolutions compute in the channels-last format.
    """
    frozen = copy.deepcopy(module).eval().requires_grad_(False)
    narrow = is_narrow(module)

    def predict(params: Tensor, inputs: Tensor) -> Tensor:
        tensors = layout.unflatten(params)
        if narrow:
            tensors = {name: channels_last(tensor) for name, tensor in tensors.items()}
            inputs = channels_last(inputs)
        logits: Tensor = functional_call(frozen, tensors, (inputs,))
        return logits

    return predict


def is_narrow(module: nn.Module) -> bool:
    """Say whether the module has convolutions that are all faster in the channels-last format.

    A LeNet is much faster in it, a full VGG-9 slower.
    """
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


def _shorten(names: Collection[str], limit: int = 5) -> str:
    shown = ", ".join(repr(name[:60]) for name in list(names)[:limit])
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")
