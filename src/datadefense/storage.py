"""Files that survive a crash: atomic writes, and a defense's state as safetensors with JSON.

A state is a tree of frozen dataclasses, tuples, dicts, tensors, numbers, texts and None. Its
tensors go into a safetensors file under the path that leads to them; the rest goes, as JSON, into
the file's metadata. Nothing is pickled, and every value comes back with the same bits. Keys of
dicts are integers or texts.
"""

import dataclasses
import errno
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

S = TypeVar("S")
FORMAT = "datadefense-state-2"


class StateError(ValueError):
    """A state file that is broken, or that belongs to something else."""


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a new file beside ``path``, then put it in place in one step.

    Whoever reads ``path`` sees the old content or the new, never a part of it. An error of the disk
    names ``path``.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(part)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(error.errno or errno.EIO, reason, str(path)) from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a file or folder, which ends with the process however that ends.

    Where another holds it, wait for it or raise BlockingIOError. What is held is what ``path``
    names now: one that was removed meanwhile and made anew is another, and nobody's yet.
    """
    held = _hold(path, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    try:
        yield
    finally:
        os.close(held)


def _hold(path: Path, how: int) -> int:
    """Return a descriptor that has the lock of what ``path`` names."""
    while True:
        held = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(held, how)
            if os.path.samestat(os.fstat(held), path.stat()):
                return held
        except BaseException:
            os.close(held)
            raise
        os.close(held)


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Hold the lock of a file that is there for nothing else, and made where it is missing."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    with locked(lock):
        yield


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    write_atomically(path, lambda part: _put(part, text))


def save_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Write a safetensors file atomically."""
    solid = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}

    def write(part: Path) -> None:
        try:
            save_file(solid, part, metadata)
        except SafetensorError as error:
            raise OSError(errno.EIO, str(error)) from error

    write_atomically(path, write)


def save_state(path: Path | str, state: object) -> None:
    """Write a defense's state to one file, atomically."""
    tensors: dict[str, Tensor] = {}
    tree = _encode(state, "state", tensors)
    save_tensors(Path(path), tensors, {"format": FORMAT, "tree": json.dumps(tree)})


def load_state(path: Path | str, like: S) -> S:
    """Read a state back. ``like`` is a state of the same kind, such as ``defense.init`` makes.

    Classes come from it, never from the file; names of fields, dtypes and shapes must agree with
    it. A field that is None or empty there can hold plain values and tensors only.
    """
    path = Path(path)
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise StateError(f"{path} is not a readable state file: {error}") from error
    if metadata.get("format") != FORMAT:
        raise StateError(f"{path} is not a state file of this version ({FORMAT})")
    try:
        state: S = _decode(json.loads(metadata["tree"]), like, "state", tensors, path)
    except (KeyError, AttributeError, TypeError, StopIteration, json.JSONDecodeError) as error:
        raise StateError(f"{path} is a broken state file: {error!r}") from error
    if type(state) is not type(like):
        raise StateError(f"{path} does not hold a {type(like).__name__}")
    return state


def _put(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _encode(value: object, where: str, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, Tensor):
        name = f"{len(tensors)}:{where}"
        tensors[name] = value
        return {"tensor": name}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {
            "fields": {
                name: _encode(getattr(value, name), f"{where}.{name}", tensors) for name in names
            }
        }
    if isinstance(value, tuple):
        kind = "named" if hasattr(value, "_fields") else "items"
        return {kind: [_encode(v, f"{where}.{i}", tensors) for i, v in enumerate(value)]}
    if isinstance(value, dict):
        if odd := [key for key in value if type(key) not in (int, str)]:
            raise StateError(f"{where} has the key {odd[0]!r}; keys must be integers or texts")
        return {"pairs": [[k, _encode(v, f"{where}.{k}", tensors)] for k, v in value.items()]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise StateError(f"{where} is a {type(value).__name__}, which a state cannot hold")


def _decode(tree: Any, like: Any, where: str, tensors: dict[str, Tensor], path: Path) -> Any:
    kind, content = next(iter(tree.items()))
    if kind == "value":
        return content
    if kind == "tensor":
        tensor = tensors[content]
        if isinstance(like, Tensor) and (tensor.dtype, tensor.shape) != (like.dtype, like.shape):
            raise StateError(
                f"{path}: {where} is {tensor.dtype} {tuple(tensor.shape)}, "
                f"expected {like.dtype} {tuple(like.shape)}"
            )
        return tensor
    if kind in ("items", "named"):
        same = isinstance(like, tuple) and len(like) == len(content)
        parts = like if same else (None,) * len(content)
        items = [
            _decode(item, part, f"{where}.{i}", tensors, path)
            for i, (item, part) in enumerate(zip(content, parts, strict=True))
        ]
        if kind == "items":
            return tuple(items)
        if not same or not hasattr(like, "_fields"):
            raise StateError(f"{path}: {where} does not hold a {type(like).__name__}")
        return type(like)(*items)
    if kind == "pairs":
        known = like if isinstance(like, dict) else {}
        return {
            key: _decode(item, known.get(key), f"{where}.{key}", tensors, path)
            for key, item in content
        }
    fields = dataclasses.fields(like) if _is_instance(like) else ()
    names = [field.name for field in fields if field.name in content or not _has_default(field)]
    if kind != "fields" or not fields or set(names) != set(content):
        raise StateError(f"{path}: {where} does not hold a {type(like).__name__}")
    return type(like)(
        **{
            name: _decode(content[name], getattr(like, name), f"{where}.{name}", tensors, path)
            for name in names
        }
    )


def _has_default(field: dataclasses.Field[Any]) -> bool:
    """Say whether a file may do without it: one of a version that did not know it yet."""
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


def _is_instance(value: object) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)
