"""Numpy's arrays in a pickle: the few names that they need, and what stands here for each.

Behind a name is not numpy's function but a small one of this file, which checks its arguments and
makes nothing that is larger than what it was given.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datadefense.core.errors import DataDefenseError

MAX_DIMENSIONS = 8
MAX_SIDE = 1 << 30
_DTYPE = re.compile(r"b1|[iu][1248]|f[248]")


class PickleError(DataDefenseError, ValueError):
    """A pickle that asks for something else than plain data."""


@dataclass(frozen=True, slots=True)
class Name:
    """What a pickle gets for a name: it can be called, and in no way changed."""

    name: str
    call: Callable[..., object]


class Dtype:
    """A dtype while the pickle is read: a letter and a width, then perhaps an order of bytes."""

    __slots__ = ("dtype",)

    def __init__(self, code: str) -> None:
        self.dtype: np.dtype[Any] = np.dtype(code)

    def build(self, state: object) -> None:
        """Take the order of bytes."""
        match state:
            case (int(), order, None, None, None, int(), int(), *_):
                if (symbol := _text(order)) not in ("<", ">", "|", "="):
                    raise PickleError(f"byte order {symbol[:10]!r}")
                self.dtype = np.dtype(symbol + self.dtype.str[1:])
            case _:
                raise PickleError("a dtype with parts")


class Array:
    """An array while the pickle is read: empty until its state comes."""

    __slots__ = ("array",)

    def __init__(self, array: NDArray[Any] | None) -> None:
        self.array = array

    def build(self, state: object) -> None:
        """Take shape, dtype and content, once."""
        match state:
            case (int(), shape, Dtype() as dtype, bool() | int() as fortran, content):
                if self.array is not None:
                    raise PickleError("an array that is changed")
                self.array = _view(content, dtype, shape, fortran=bool(fortran))
            case _:
                raise PickleError("an array's state that is not numpy's")


def known_name(module: str, name: str) -> Name:
    """Return what stands for a name, or refuse it."""
    known = _KNOWN.get((module.replace("numpy._core", "numpy.core"), name))
    if known is None:
        raise PickleError(f"it asks for {module[:80]}.{name[:80]}")
    return known


def _view(content: object, dtype: object, shape: object, *, fortran: bool) -> NDArray[Any]:
    if not isinstance(content, bytes | bytearray) or not isinstance(dtype, Dtype):
        raise PickleError("an array of objects")
    if not isinstance(shape, tuple) or len(shape) > MAX_DIMENSIONS:
        raise PickleError("an array without a shape")
    if not all(type(size) is int and 0 <= size <= MAX_SIDE for size in shape):
        raise PickleError("an array of an impossible shape")
    if math.prod(shape) * dtype.dtype.itemsize != len(content):
        raise PickleError(f"an array of shape {shape} in {len(content)} bytes")
    flat = np.frombuffer(content, dtype.dtype) if content else np.empty(0, dtype.dtype)
    array = flat.reshape(shape, order="F" if fortran else "C")
    array.flags.writeable = False
    return array


def _reconstruct(kind: object, shape: object, _code: object) -> Array:
    empty = isinstance(shape, tuple) and len(shape) == 1 and shape[0] == 0
    if kind is not _KNOWN["numpy", "ndarray"] or not empty:
        raise PickleError("an array that is not numpy's")
    return Array(None)


def _from_buffer(content: object, dtype: object, shape: object, order: object) -> Array:
    return Array(_view(content, dtype, shape, fortran=_text(order) == "F"))


def _dtype(code: object, _align: object = False, _copy: object = False) -> Dtype:
    if _DTYPE.fullmatch(text := _text(code)) is None:
        raise PickleError(f"dtype {text[:20]!r}")
    return Dtype(text)


def _scalar(dtype: object, content: object) -> object:
    return _view(content, dtype, (), fortran=False).item()


def _encode(text: object, encoding: object) -> bytes:
    if not isinstance(text, str) or _text(encoding) not in ("latin1", "latin-1"):
        raise PickleError("_codecs.encode of something else than latin-1")
    return text.encode("latin-1")


def _no_bytes() -> bytes:
    return b""


def _not_called(*_arguments: object) -> object:
    raise PickleError("a call of numpy.ndarray")


def _text(value: object) -> str:
    if not isinstance(value, str | bytes):
        raise PickleError("no text where there should be one")
    return value.decode("latin-1") if isinstance(value, bytes) else value


_KNOWN: Mapping[tuple[str, str], Name] = {
    ("numpy", "ndarray"): Name("numpy.ndarray", _not_called),
    ("numpy", "dtype"): Name("numpy.dtype", _dtype),
    ("numpy.core.multiarray", "_reconstruct"): Name("_reconstruct", _reconstruct),
    ("numpy.core.multiarray", "scalar"): Name("scalar", _scalar),
    ("numpy.core.numeric", "_frombuffer"): Name("_frombuffer", _from_buffer),
    ("_codecs", "encode"): Name("_codecs.encode", _encode),
    ("__builtin__", "bytes"): Name("bytes", _no_bytes),  # how b"" is written for Python 2
}
