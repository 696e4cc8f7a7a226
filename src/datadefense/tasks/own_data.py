"""A user's data as examples: tensors, arrays or a map-style torch Dataset, and their checks."""

import hashlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

from datadefense.core.examples import Examples
from datadefense.core.layout import Layout
from datadefense.core.settings import SettingsError

Given = Examples | tuple[Any, Any] | Dataset[Any]
"""Examples, a pair of inputs and labels (tensors or arrays), or a Dataset of such pairs."""
Poison = Callable[[Tensor], Tensor]
"""``poison(input) -> input``: what the attacker does to one input."""


def as_examples(given: Given, what: str) -> Examples:
    """Return data as examples; float64 inputs become float32, and labels int64.

    ``what`` is the name of the data in messages.
    """
    if isinstance(given, Examples):
        inputs, labels = given.inputs, given.labels
    elif isinstance(given, TensorDataset) and len(given.tensors) == 2:
        inputs, labels = given.tensors
    elif isinstance(given, tuple | list) and len(given) == 2:
        inputs, labels = (_tensor(part, what) for part in given)
    elif hasattr(given, "__getitem__") and hasattr(given, "__len__"):
        inputs, labels = _gathered(given, what)
    else:
        raise SettingsError(
            f"{what} must be (inputs, labels) or a map-style Dataset, got {type(given).__name__}"
        )
    return _checked(inputs, labels, what)


def _tensor(values: Any, what: str) -> Tensor:
    try:
        return torch.as_tensor(values).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise SettingsError(f"{what} must be tensors or arrays of numbers: {error}") from error


def _gathered(dataset: Any, what: str) -> tuple[Tensor, Tensor]:
    """Read a Dataset once, item by item."""
    inputs, labels = [], []
    for place in range(len(dataset)):
        item = dataset[place]
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise SettingsError(f"{what}: item {place} must be (input, label), got {item!r:.80}")
        inputs.append(_tensor(item[0], f"inputs of {what}"))
        labels.append(int(item[1]))
    if not inputs:
        raise SettingsError(f"{what} must have >= 1 examples, got 0")
    if len(shapes := {tuple(tensor.shape) for tensor in inputs}) > 1:
        raise SettingsError(f"inputs of {what} must have one shape, got {sorted(shapes)[:3]}")
    return torch.stack(inputs), torch.tensor(labels)


def _checked(inputs: Tensor, labels: Tensor, what: str) -> Examples:
    """Return the examples, or raise: labels are integers, one an input, and all is finite."""
    if labels.ndim != 1 or labels.is_floating_point() or labels.is_complex():
        raise SettingsError(
            f"labels of {what} must be integers, one an input, got {labels.dtype} of shape "
            f"{tuple(labels.shape)}"
        )
    if inputs.ndim == 0 or len(inputs) != len(labels):
        raise SettingsError(
            f"{what} must have one label an input, got inputs of shape {tuple(inputs.shape)} "
            f"and {len(labels)} labels"
        )
    if len(labels) == 0:
        raise SettingsError(f"{what} must have >= 1 examples, got 0")
    if inputs.dtype == torch.float64:
        inputs = inputs.float()
    if inputs.is_floating_point() and (bad := int((~inputs.isfinite()).sum())):
        raise SettingsError(f"inputs of {what} must be finite, got {bad} values that are not")
    return Examples(inputs.detach().contiguous(), labels.to(torch.int64))


def check_fits(data: Examples, like: Examples, what: str) -> None:
    """Raise unless inputs have the shape and the type of the training data's."""
    has, wanted = (
        (tuple(part.inputs.shape[1:]), str(part.inputs.dtype).removeprefix("torch."))
        for part in (data, like)
    )
    if has != wanted:
        raise SettingsError(
            f"inputs of {what} must be like those of train, got {has[1]} of shape {has[0]}, "
            f"not {wanted[1]} of shape {wanted[0]}"
        )


def check_labels(labels: Tensor, classes: int, what: str) -> None:
    """Raise unless labels are numbers of the model's classes."""
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise SettingsError(
            f"{what} must be in 0..{classes - 1}, the {classes} classes of the model's output, "
            f"got {low}..{high}"
        )


def count_classes(module: nn.Module, data: Examples) -> int:
    """Return how many classes a model tells apart, or raise if it cannot take the inputs."""
    local = {type(part).__qualname__ for part in module.modules()}
    if hidden := sorted(name for name in local if "<locals>" in name):
        raise SettingsError(
            f"the class {hidden[0]} of the model must be at the top level of its module: "
            "the processes that train clients import it from there"
        )
    if not any(isinstance(part, nn.Linear) for part in module.modules()):
        raise SettingsError(
            f"the model must have an nn.Linear, whose input is what a defense set is seen by; "
            f"{type(module).__name__} has none"
        )
    Layout.of_module(module)
    few = data.inputs[:4]
    module.eval()
    try:
        with torch.no_grad():
            logits = module(few)
    except Exception as error:
        raise SettingsError(
            f"the model must take a batch of inputs, {few.dtype} of shape {tuple(few.shape)}: "
            f"{error}"
        ) from error
    shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(few):
        raise SettingsError(
            f"the model must give {len(few)} inputs one row of class scores each, got {shape}"
        )
    if logits.shape[1] < 2:
        raise SettingsError(f"the model must tell >= 2 classes apart, got scores of shape {shape}")
    return logits.shape[1]


def poisoned(inputs: Tensor, poison: Poison) -> Tensor:
    """Return poisoned copies of inputs, or raise if they are not such inputs any more."""
    made: list[Tensor] = []
    for place, plain in enumerate(inputs):
        changed = poison(plain.clone())
        if not isinstance(changed, Tensor):
            raise SettingsError(
                f"poison must return a tensor, got {type(changed).__name__} for input {place}"
            )
        if changed.shape != plain.shape or changed.dtype != plain.dtype:
            raise SettingsError(
                f"poison must return an input like the one it is given, {plain.dtype} of shape "
                f"{tuple(plain.shape)}, got {changed.dtype} of shape {tuple(changed.shape)}"
            )
        if changed.is_floating_point() and not bool(changed.isfinite().all()):
            raise SettingsError(f"poison must return finite values, got others for input {place}")
        made.append(changed.detach())
    return torch.stack(made) if made else inputs


def digest_of(module: nn.Module, *parts: Tensor | None) -> str:
    """Return a short hash of a model's layers and values, and of tensors."""
    hashed = hashlib.blake2b(repr(module).encode(), digest_size=8)
    for tensor in (*module.state_dict().values(), *parts):
        if tensor is not None:
            hashed.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
            hashed.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return hashed.hexdigest()
