"""How a law says that it is broken: by an exception, which ``python -O`` does not remove."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from datadefense.core.errors import DataDefenseError, InputError
from datadefense.core.round import Aggregate


class BrokenLawError(DataDefenseError, AssertionError):
    """A plug-in does not do what every plug-in of its kind does, or not what it promises."""


def require(holds: bool, message: str) -> None:
    """Raise `BrokenLawError` unless something holds.

    >>> require(1 + 1 == 2, "sums are off")
    >>> require(1 + 1 == 3, "sums are off")
    Traceback (most recent call last):
    datadefense.testing.broken.BrokenLawError: sums are off
    """
    if not holds:
        raise BrokenLawError(message)


def require_plugin(given: object, base: type[object], check: Callable[..., None]) -> None:
    """Raise `InputError` unless a check was given a plug-in: no class of them, and no function.

    >>> require_plugin(dict, dict, print)
    Traceback (most recent call last):
    datadefense.core.errors.InputError: print takes a dict, got the class dict: write print(dict())
    """
    if isinstance(given, base):
        return
    name, made = check.__name__, getattr(given, "__name__", "")
    got = f"a {type(given).__name__}"
    if isinstance(given, type):
        got = f"the class {made}"
    elif callable(given) and made:
        got = f"the function {made}"
    call = f": write {name}({made}())" if callable(given) and made else ""
    raise InputError(f"{name} takes a {base.__name__}, got {got}{call}")


@contextmanager
def naming(plugin: object, law: Callable[..., None]) -> Iterator[None]:
    """Say in a `BrokenLawError` which plug-in broke which law."""
    try:
        yield
    except BrokenLawError as error:
        raise BrokenLawError(f"{plugin!r} breaks {law.__name__}: {error}") from error


def require_equal(actual: Tensor, expected: Tensor, message: str) -> None:
    """Raise unless two tensors are the same to the bit; NaN is never."""
    require(torch.equal(actual, expected), message)


def require_close(actual: Tensor, expected: Tensor, what: str, tolerance: float = 2e-6) -> None:
    """Raise if two tensors differ by more than a share of the greater of 1 and their size."""
    gap = float((actual.double() - expected.double()).abs().max())
    size = max(1.0, float(expected.double().abs().max()))
    require(gap <= tolerance * size, f"{what}: off by {gap:g}")


def require_finite(values: Tensor, message: str) -> None:
    """Raise if a value is NaN or infinite."""
    require(bool(values.isfinite().all()), message)


def weights_of(result: Aggregate[object], promise: str) -> Tensor:
    """Return the weights, without which a promise cannot be kept."""
    if result.weights is None:
        raise BrokenLawError(f"{promise} needs weights")
    return result.weights


def tensors_of(state: object) -> list[Tensor]:
    """Return the tensors in a state, in the order of its fields."""
    if isinstance(state, Tensor):
        return [state]
    if isinstance(state, tuple):
        return [tensor for part in state for tensor in tensors_of(part)]
    if isinstance(state, dict):
        return [tensor for part in state.values() for tensor in tensors_of(part)]
    fields = getattr(state, "__dataclass_fields__", {})
    return [tensor for name in fields for tensor in tensors_of(getattr(state, name))]
