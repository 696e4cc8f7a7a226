"""Files that survive a crash: atomic writes, locks, and a defense's state as one file.

A state (`core.state_tree`) becomes a safetensors file: its tensors under the path that leads
to them, the rest as JSON in the file's metadata, a SHA-256 over all of it. Nothing is pickled, and
every value comes back with the same bits. A state may hold a secret seed: its file is for its owner
alone, mode 0600.
"""

import errno
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from torch import Tensor

from datadefense.core import tensor_file
from datadefense.core.errors import DataDefenseError
from datadefense.core.fingerprint import Fingerprint
from datadefense.core.foreign import error_text
from datadefense.core.state_tree import Place, TreeError, decode, encode

S = TypeVar("S")
FORMAT = "datadefense-state-3"
UNSEALED_FORMAT = "datadefense-state-2"
"""The format before: it is read too, and has no checksum."""
OWNER = "fingerprint"
"""Name in the metadata under which a file says which run's state it holds."""
OWNER_ONLY = 0o600
"""Mode of a file that only its owner may read."""


class StateError(DataDefenseError, ValueError):
    """A state file that is broken, or that belongs to something else."""


def write_atomically(path: Path, write: Callable[[Path], None], mode: int = 0o666) -> None:
    """Let ``write`` fill a new file beside ``path``, then put it in place in one step.

    Whoever reads ``path`` sees the old content or the new, never a part of it. The file is made
    with ``mode``, less the process's umask, before anything is in it. An error of the disk names
    ``path``.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode))
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
def exclusive_lock(lock: Path) -> Iterator[None]:
    """Hold the lock of a file that is there for nothing else, and made where it is missing."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    with locked(lock):
        yield


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    write_atomically(path, lambda part: _put(part, text))


def save_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Write a safetensors file atomically; equal content makes equal bytes."""
    write_atomically(path, lambda part: tensor_file.write(part, tensors, metadata))


def save_state(path: Path | str, state: object, fingerprint: Fingerprint | None = None) -> None:
    """Write a defense's state to one file, atomically and for its owner's eyes alone.

    With a ``fingerprint``, the file says which run's state it is.
    """
    tensors, metadata = _encoded(state)
    if fingerprint is not None:
        metadata[OWNER] = fingerprint.to_text()
    write_atomically(
        Path(path), lambda part: tensor_file.write_sealed(part, tensors, metadata), OWNER_ONLY
    )


def state_bytes(state: object) -> bytes:
    """Return the content that `save_state` writes."""
    return tensor_file.sealed(*_encoded(state))


def _encoded(state: object) -> tuple[dict[str, Tensor], dict[str, str]]:
    tensors: dict[str, Tensor] = {}
    try:
        tree = json.dumps(encode(state, "state", tensors), allow_nan=False)
    except ValueError as error:
        raise StateError(str(error)) from error
    return tensors, {"format": FORMAT, "tree": tree}


def load_state(path: Path | str, like: S, fingerprint: Fingerprint | None = None) -> S:
    """Read a state back. ``like`` is a state of the same kind, such as ``defense.init`` makes.

    Classes come from it, never from the file; names of fields, types of values, dtypes and shapes
    must agree with it, or with what its class declares. A field that is None or empty there can
    hold plain values and tensors only. A file with a wrong checksum is refused; one of the format
    before this one has none, and is held to the rest. With a ``fingerprint``, so is a file of
    another run, and one that does not say which run it is of.
    """
    path = Path(path)
    try:
        content = tensor_file.read_content(path)
    except Exception as error:
        raise StateError(f"{path} is not a readable state file: {error_text(error)}") from error
    return state_of(content, like, str(path), fingerprint)


def state_of(
    content: bytes, like: S, name: str = "the state", fingerprint: Fingerprint | None = None
) -> S:
    """Return the state in the content of a file, held to ``like`` as in `load_state`."""
    try:
        file = tensor_file.parse(content)
    except Exception as error:
        raise StateError(f"{name} is not a readable state file: {error_text(error)}") from error
    kind = file.metadata.get("format")
    if kind not in (FORMAT, UNSEALED_FORMAT):
        raise StateError(f"{name} is not a state file of this version ({FORMAT})")
    try:
        if kind == FORMAT:
            tensor_file.check_seal(content, file.metadata)
        if fingerprint is not None:
            _check_owner(name, file.metadata.get(OWNER), fingerprint)
        # Clones lie in memory as a defense's own tensors do, which sums of floats depend on.
        tensors = {key: tensor.clone() for key, tensor in file.tensors.items()}
        state: S = decode(json.loads(file.metadata["tree"]), Place("state", like), tensors)
    except TreeError as error:
        raise StateError(f"{name}: {error}") from error
    except StateError:
        raise
    except Exception as error:
        raise StateError(f"{name} is a broken state file: {error_text(error)}") from error
    if type(state) is not type(like):
        raise StateError(f"{name} does not hold a {type(like).__name__}")
    return state


def _check_owner(name: str, stored: str | None, fingerprint: Fingerprint) -> None:
    """Raise StateError unless the stored fingerprint is this one."""
    problem = (
        "it does not say which run it is of, as files of older versions do not"
        if stored is None
        else fingerprint.difference(stored)
    )
    if problem is not None:
        raise StateError(
            f"{Path(name).absolute()} is no state of this run: {problem}. Continue as that run was "
            "started, or start anew: choose another place for the state, or move this file away"
        )


def _put(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
