"""Parameters as one vector: the layout that maps a module or a state dict to [dim] and back.

What becomes of buffers (BatchNorm's running statistics, counters) is said in
`datadefense.core.buffers`: by default floating ones are part of the vector, integer ones are not.
"""

import logging
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from datadefense.core.buffers import (
    BATCH_NORM_BUFFERS,
    VARIANCE,
    BufferPolicy,
    FreshStatisticsWarning,
    UnhandledBuffersError,
    fresh_statistics,
    last_part,
    refusal,
    shorten,
)
from datadefense.core.errors import InputError
from datadefense.core.settings import SettingsError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Slot:
    """Where one tensor lies in the vector: ``vector[start:stop].view(shape)``.

    A ``carried`` one is a buffer: what clients send moves it, no gradient does.
    """

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    start: int
    stop: int
    carried: bool = False

    @property
    def is_variance(self) -> bool:
        """Whether it is a running variance, which must not be below 0."""
        return self.carried and last_part(self.name) == VARIANCE


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
    def of_module(cls, module: nn.Module, buffers: BufferPolicy = "aggregate") -> "Layout":
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
        buffers: BufferPolicy = "aggregate",
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
            or last_part(name) in BATCH_NORM_BUFFERS
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
            raise SettingsError(f"buffers must be one of {get_args(BufferPolicy)}, got {policy!r}")
        if buffer_names and policy == "refuse":
            raise UnhandledBuffersError(refusal(buffer_names))
        slots: list[Slot] = []
        kept: list[str] = []
        start = 0
        for name, tensor in tensors.items():
            joins = policy == "aggregate" and tensor.is_floating_point()
            if name in buffer_names and not joins:
                kept.append(name)
                continue
            if not tensor.is_floating_point():
                raise InputError(f"parameter {name!r} must be floating, got {tensor.dtype}")
            stop = start + tensor.numel()
            carried = name in buffer_names
            slots.append(Slot(name, tuple(tensor.shape), tensor.dtype, start, stop, carried))
            start = stop
        if start == 0:
            raise InputError("the model has no parameters")
        if warning := fresh_statistics(tensors, kept):
            warnings.warn(warning, FreshStatisticsWarning, stacklevel=3)
        layout = cls(tuple(slots), tuple(kept), aliases)
        if line := layout.about_buffers():
            logger.info("%s", line)
        return layout

    def about_buffers(self) -> str | None:
        """Say in one line what becomes of the model's buffers; None if it has none."""
        carried = [slot.name for slot in self.slots if slot.carried]
        parts = []
        if carried:
            parts.append(f"{len(carried)} are aggregated with the parameters ({shorten(carried)})")
        if self.kept:
            parts.append(f"{len(self.kept)} stay as the server has them ({shorten(self.kept)})")
        return f"buffers of the model: {'; '.join(parts)}" if parts else None

    def mismatch(self, tensors: Mapping[str, Tensor]) -> str | None:
        """Say in one line why ``tensors`` do not fit this layout; None if they do.

        Kept buffers and aliases may be there or not.
        """
        names = {slot.name for slot in self.slots}
        optional = {*self.kept, *(alias for alias, _ in self.aliases)}
        if missing := [slot.name for slot in self.slots if slot.name not in tensors]:
            return f"missing tensors: {shorten(missing)}"
        if extra := [name for name in tensors if name not in names and name not in optional]:
            return f"unknown tensors: {shorten(extra)}"
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
            if any(slot.carried and slot.name not in tensors for slot in self.slots):
                problem += "; a module's state_dict() has its buffers too"
            raise InputError(problem)
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
            raise InputError(f"expected a vector of shape ({self.dim},), got {tuple(vector.shape)}")
        pieces = torch.split(vector, [slot.stop - slot.start for slot in self.slots])
        tensors = {
            slot.name: piece.view(slot.shape).to(slot.dtype)
            for slot, piece in zip(self.slots, pieces, strict=True)
        }
        return tensors | {a: tensors[name] for a, name in self.aliases if name in tensors}

    def split(self, matrix: Float[Tensor, "rows dim"]) -> dict[str, Float[Tensor, "rows size"]]:
        """Return the columns of each tensor by its name, as views: a matrix seen layer by layer."""
        if matrix.ndim != 2 or matrix.shape[1] != self.dim:
            raise ValueError(f"expected a matrix [rows, {self.dim}], got {tuple(matrix.shape)}")
        return {slot.name: matrix[:, slot.start : slot.stop] for slot in self.slots}

    def to_valid_params(
        self, vector: Float[Tensor, " dim"], before: Float[Tensor, " dim"]
    ) -> Float[Tensor, " dim"] | None:
        """Return the vector as a model can hold it; None if that is not finite.

        A value that is finite in the vector may not be in a float16 tensor. No running variance is
        below 0, whatever clients sent: where it would be, it stays as it was ``before``. (0 in its
        place would be no help: BatchNorm divides by the root of it, and a dozen layers overflow.)
        """
        variances = [slot for slot in self.slots if slot.is_variance]
        if variances:
            vector = vector.clone()
            for slot in variances:
                part = vector[slot.start : slot.stop]
                part.copy_(torch.where(part < 0, before[slot.start : slot.stop].clamp(min=0), part))
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
            raise InputError(f"bind needs every tensor in {self.dtype}; use flatten instead")
        tensors = dict(module.named_parameters()) | dict(module.named_buffers())
        vector = self.flatten({slot.name: tensors[slot.name] for slot in self.slots})
        for name, view in self.unflatten(vector).items():
            if name in tensors:
                tensors[name].data = view
        return vector
