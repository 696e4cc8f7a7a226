"""Plain pickles: arrays, numbers, texts and containers out of a pickle that may be hostile.

CIFAR's python batches and the Southwest images are pickles, and a pickle is a program. Here it runs
with its hands tied: every instruction is looked at before the first is run; the only names it can
ask for are the few that numpy's arrays need; and behind those names are not numpy's functions but
the small ones of this file, which check their arguments and allocate nothing of their own.
"""

import io
import itertools
import math
import pickle
import pickletools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from numpy.typing import NDArray
from torch import Tensor

from datadefense.data.errors import DataError, one_line
from datadefense.examples import Examples

MAX_BYTES = 1 << 30
MAX_STEPS = 1_000_000
MAX_DEPTH = 16
MAX_DIMENSIONS = 8
OPCODES = """
    PROTO FRAME STOP MARK POP POP_MARK DUP NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG
    LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE BINUNICODE8
    SHORT_BINUNICODE BINBYTES BINBYTES8 SHORT_BINBYTES BYTEARRAY8 EMPTY_LIST LIST APPEND APPENDS
    EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT DICT SETITEM SETITEMS GET BINGET LONG_BINGET
    PUT BINPUT LONG_BINPUT MEMOIZE GLOBAL STACK_GLOBAL REDUCE BUILD
"""
_DTYPE = re.compile(r"b1|[iu][1248]|f[248]")
_PLAIN = (type(None), bool, int, float, str, bytes, bytearray)


def read_plain(path: Path, *, max_bytes: int = MAX_BYTES) -> Any:
    """Read a pickle of plain data; anything else in it is a DataError, and is never run.

    Arrays come as read-only views of the file's bytes, numpy's scalars as Python numbers, and the
    texts of Python 2 as bytes.
    """
    if not path.is_file():
        raise DataError(f"{path} is not a file")
    if (size := path.stat().st_size) > max_bytes:
        raise DataError(f"{path} has {size} bytes, more than the {max_bytes} that are read")
    content = path.read_bytes()
    try:
        _inspect(content)
        value = _PlainUnpickler(io.BytesIO(content), encoding="bytes").load()
        return _settle(value, 0, itertools.count())
    except Exception as error:  # broken pickles raise almost anything
        raise DataError(f"{path} is not a pickle of plain data: {one_line(error)}") from error


def read_cifar(paths: Sequence[Path], label_key: str) -> Examples:
    """Read python batches of CIFAR: images uint8 [N, 3, 32, 32], labels of ``label_key``."""
    images: list[Tensor] = []
    labels: list[Tensor] = []
    for path in paths:
        batch = read_plain(path)
        if not isinstance(batch, dict):
            raise DataError(f"{path} is not a batch of CIFAR")
        named = {key.decode() if isinstance(key, bytes) else key: batch[key] for key in batch}
        pixels: Any = named.get("data")
        classes: Any = named.get(label_key)
        if not _is_bytes(pixels) or pixels.ndim != 2 or pixels.shape[1] != 3 * 32 * 32:
            raise DataError(f"{path}: 'data' must be a uint8 array [N, 3072]")
        if not isinstance(classes, list) or not all(type(label) is int for label in classes):
            raise DataError(f"{path}: {label_key!r} must be a list of integers")
        if len(classes) != len(pixels):
            raise DataError(f"{path}: {len(pixels)} images, but {len(classes)} labels")
        images.append(torch.from_numpy(pixels.reshape(-1, 3, 32, 32).copy()))
        labels.append(torch.tensor(classes, dtype=torch.int64))
    return Examples(torch.cat(images), torch.cat(labels))


def read_image_array(path: Path) -> UInt8[Tensor, "n 3 h w"]:
    """Read a pickled uint8 array of images [N, H, W, 3], as the Southwest images are stored."""
    pixels = read_plain(path)
    if not _is_bytes(pixels) or pixels.ndim != 4 or pixels.shape[3] != 3 or not pixels.size:
        raise DataError(f"{path} must hold a uint8 array of images [N, H, W, 3]")
    return torch.from_numpy(np.array(pixels.transpose(0, 3, 1, 2), order="C"))


def _is_bytes(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.uint8


def _inspect(content: bytes) -> None:
    allowed = frozenset(OPCODES.split())
    for step, (opcode, argument, position) in enumerate(pickletools.genops(io.BytesIO(content))):
        if opcode.name not in allowed:
            raise pickle.UnpicklingError(f"instruction {opcode.name} at byte {position}")
        if step >= MAX_STEPS:
            raise pickle.UnpicklingError(f"more than {MAX_STEPS} instructions")
        if opcode.name in ("PUT", "LONG_BINPUT") and int(argument or 0) > MAX_STEPS:
            raise pickle.UnpicklingError(f"memory cell {argument} at byte {position}")


def _settle(value: Any, depth: int, steps: Iterator[int]) -> Any:
    if depth > MAX_DEPTH or next(steps) > MAX_STEPS:
        raise pickle.UnpicklingError("too deep, or too many values")
    if type(value) in _PLAIN:
        return value
    if type(value) is _Array and value.array is not None:
        return value.array
    if type(value) in (list, tuple):
        return type(value)(_settle(item, depth + 1, steps) for item in value)
    if type(value) is dict:
        return {
            _settle(key, depth + 1, steps): _settle(item, depth + 1, steps)
            for key, item in value.items()
        }
    raise pickle.UnpicklingError(f"a value of type {type(value).__name__.lstrip('_')}")


@dataclass(frozen=True, slots=True)
class _Allowed:
    """What a pickle gets for a name: it can be called, and in no way changed."""

    name: str
    call: Callable[..., object]

    def __call__(self, *arguments: object) -> object:
        return self.call(*arguments)

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError(f"a change of {self.name}")


class _Dtype:
    """A dtype while the pickle is read: a letter and a width, then perhaps an order of bytes."""

    __slots__ = ("dtype",)

    def __init__(self, code: str) -> None:
        self.dtype: np.dtype[Any] = np.dtype(code)

    def __setstate__(self, state: object) -> None:
        match state:
            case (int(), order, None, None, None, int(), int(), *_):
                if (symbol := _text(order)) not in ("<", ">", "|", "="):
                    raise pickle.UnpicklingError(f"byte order {symbol!r}")
                self.dtype = np.dtype(symbol + self.dtype.str[1:])
            case _:
                raise pickle.UnpicklingError("a dtype with parts")


class _Array:
    """An array while the pickle is read: empty until its state comes."""

    __slots__ = ("array",)

    def __init__(self, array: NDArray[Any] | None) -> None:
        self.array = array

    def __setstate__(self, state: object) -> None:
        match state:
            case (int(), shape, _Dtype() as dtype, fortran, content):
                self.array = _view(content, dtype, shape, "F" if fortran else "C")
            case _:
                raise pickle.UnpicklingError("an array's state that is not numpy's")


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler that knows the names of ``_KNOWN`` and no other."""

    def find_class(self, module: str, name: str) -> object:
        """Return what stands for a name, or refuse it."""
        known = _KNOWN.get((module.replace("numpy._core", "numpy.core"), name))
        if known is None:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return known


def _view(content: object, dtype: object, shape: object, order: object) -> NDArray[Any]:
    if not isinstance(content, bytes | bytearray) or not isinstance(dtype, _Dtype):
        raise pickle.UnpicklingError("an array of objects")
    if not isinstance(shape, tuple) or len(shape) > MAX_DIMENSIONS:
        raise pickle.UnpicklingError("an array without a shape")
    if not all(type(size) is int and 0 <= size <= MAX_BYTES for size in shape):
        raise pickle.UnpicklingError("an array of an impossible shape")
    if math.prod(shape) * dtype.dtype.itemsize != len(content):
        raise pickle.UnpicklingError(f"an array of shape {shape} in {len(content)} bytes")
    flat = np.frombuffer(content, dtype.dtype) if content else np.empty(0, dtype.dtype)
    array = flat.reshape(shape, order="F" if _text(order) == "F" else "C")
    array.flags.writeable = False
    return array


def _reconstruct(kind: object, shape: object, _code: object) -> _Array:
    empty = isinstance(shape, tuple) and len(shape) == 1 and shape[0] == 0
    if kind is not _KNOWN["numpy", "ndarray"] or not empty:
        raise pickle.UnpicklingError("an array that is not numpy's")
    return _Array(None)


def _from_buffer(content: object, dtype: object, shape: object, order: object) -> _Array:
    return _Array(_view(content, dtype, shape, order))


def _dtype(code: object, _align: object = False, _copy: object = False) -> _Dtype:
    if _DTYPE.fullmatch(text := _text(code)) is None:
        raise pickle.UnpicklingError(f"dtype {text!r}")
    return _Dtype(text)


def _scalar(dtype: object, content: object) -> object:
    return _view(content, dtype, (), "C").item()


def _encode(text: object, encoding: object) -> bytes:
    if not isinstance(text, str) or _text(encoding) not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError("_codecs.encode of something else than latin-1")
    return text.encode("latin-1")


def _no_bytes() -> bytes:
    return b""


def _not_called(*_arguments: object) -> object:
    raise pickle.UnpicklingError("a call of numpy.ndarray")


def _text(value: object) -> str:
    if not isinstance(value, str | bytes):
        raise pickle.UnpicklingError("no text where there should be one")
    return value.decode("latin-1") if isinstance(value, bytes) else value


_KNOWN = {
    ("numpy", "ndarray"): _Allowed("numpy.ndarray", _not_called),
    ("numpy", "dtype"): _Allowed("numpy.dtype", _dtype),
    ("numpy.core.multiarray", "_reconstruct"): _Allowed("_reconstruct", _reconstruct),
    ("numpy.core.multiarray", "scalar"): _Allowed("scalar", _scalar),
    ("numpy.core.numeric", "_frombuffer"): _Allowed("_frombuffer", _from_buffer),
    ("_codecs", "encode"): _Allowed("_codecs.encode", _encode),
    ("__builtin__", "bytes"): _Allowed("bytes", _no_bytes),  # how b"" is written for Python 2
}
