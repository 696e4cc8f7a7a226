"""A safetensors file: opened once and read within bounds; written by us, equal content equal bytes.

Reading: whoever may write the file may change it at any moment. So it is opened once, asked for its
size through the open descriptor, and read up to that size and no further. It is read, not mapped:
what happens to it later does not matter.

Writing: the library orders a header's metadata by a hash table, differently from time to time, and
some of its versions choose the file's mode. Here both are fixed.
"""

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load
from torch import Tensor

from datadefense.core.errors import InputError

LENGTH_BYTES = 8
"""Bytes at the start of a file that hold the length of its header."""
DTYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
    "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
    "I16": torch.int16,
    "U16": torch.uint16,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I32": torch.int32,
    "U32": torch.uint32,
    "F32": torch.float32,
    "C64": torch.complex64,
    "F64": torch.float64,
    "I64": torch.int64,
    "U64": torch.uint64,
}
"""Names of dtypes in a header, in the format's own order: the last ones come first in a file."""
SEAL = "sha256"
"""Name of the checksum in a file's metadata."""
UNSEALED = "0" * 64
"""What stands in the checksum's place while it is computed."""


@dataclass(frozen=True, slots=True, eq=False)
class TensorFile:
    """A safetensors file that was read: tensors in the order of its bytes, metadata, header size.

    The order is the file's, never that of a hash table: a state is only good for one order.
    """

    tensors: dict[str, Tensor]
    metadata: dict[str, str]
    header_bytes: int


def read_content(
    path: Path,
    most_bytes: int | None = None,
    most_header_bytes: int | None = None,
    listed_bytes: int | None = None,
) -> bytes:
    """Read a file whole; one that is larger than ``most_bytes`` is refused unread.

    So is one whose header says that it is longer than ``most_header_bytes`` or than the file, or
    whose size is not that of ``listed_bytes``. A pipe or a device is refused, and not waited for.
    """
    with open(path, "rb", opener=_without_waiting) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is a pipe, a device or a folder")
        if most_bytes is not None and status.st_size > most_bytes:
            raise ValueError(f"file has {status.st_size} bytes, expected <= {most_bytes}")
        if listed_bytes is not None and status.st_size != listed_bytes:
            raise ValueError(f"file has {status.st_size} bytes, had {listed_bytes} when listed")
        header = int.from_bytes(file.read(LENGTH_BYTES), "little")
        if most_header_bytes is not None and header > most_header_bytes:
            raise ValueError(f"header of {header} bytes, expected <= {most_header_bytes}")
        if not 0 < header <= status.st_size - LENGTH_BYTES:
            raise ValueError(f"header of {header} bytes in a file of {status.st_size}")
        file.seek(0)
        return file.read(status.st_size)


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; of a pipe, do not wait until somebody writes to it."""
    return os.open(path, flags | os.O_NONBLOCK)


def parse(content: bytes) -> TensorFile:
    """Return what a safetensors file holds; anything wrong with it is some exception."""
    tensors = load(content)
    header = int.from_bytes(content[:LENGTH_BYTES], "little")
    entries = json.loads(content[LENGTH_BYTES : LENGTH_BYTES + header])
    metadata = entries.pop("__metadata__", {})
    if type(metadata) is not dict or any(type(text) is not str for text in metadata.values()):
        raise ValueError("__metadata__ must be an object of texts")
    names = sorted(tensors, key=lambda name: (entries[name]["data_offsets"][0], name))
    return TensorFile({name: tensors[name] for name in names}, metadata, header)


def write(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a safetensors file, tensors in the format's own order, without a copy of them."""
    parts, entries = _arranged(tensors)
    _put(path, _header(entries, metadata), parts)


def write_sealed(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a safetensors file whose metadata has the SHA-256 of all its other bytes."""
    _put(path, *_sealed(tensors, metadata))


def sealed(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """Return the bytes that `write_sealed` writes."""
    header, parts = _sealed(tensors, metadata)
    return b"".join([header, *(bytes(_bytes(part)) for part in parts)])


def _sealed(
    tensors: Mapping[str, Tensor], metadata: Mapping[str, str]
) -> tuple[bytes, list[Tensor]]:
    parts, entries = _arranged(tensors)
    digest = hashlib.sha256(_header(entries, {**metadata, SEAL: UNSEALED}))
    for part in parts:
        digest.update(_bytes(part))
    return _header(entries, {**metadata, SEAL: digest.hexdigest()}), parts


def check_seal(content: bytes, metadata: Mapping[str, str]) -> None:
    """Raise ValueError unless the file's bytes have the checksum that its metadata names."""
    seal = metadata.get(SEAL, "")
    start = LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "little")
    head = content[:start].replace(seal.encode(), UNSEALED.encode()) if seal else content[:start]
    digest = hashlib.sha256(head)
    digest.update(memoryview(content)[start:])
    if digest.hexdigest() != seal:
        raise ValueError(f"its bytes have the SHA-256 {digest.hexdigest()}, it says {seal!r:.70}")


def _arranged(tensors: Mapping[str, Tensor]) -> tuple[list[Tensor], dict[str, Any]]:
    """Return the tensors in the order of the file, and what the header says of each."""
    kinds = {dtype: (rank, name) for rank, (name, dtype) in enumerate(DTYPES.items())}
    for name, tensor in tensors.items():
        if tensor.dtype not in kinds:
            raise InputError(f"{name} is {tensor.dtype}, which a file cannot hold")
    parts: list[Tensor] = []
    entries: dict[str, Any] = {}
    start = 0
    for name in sorted(tensors, key=lambda name: (-kinds[tensors[name].dtype][0], name)):
        tensor = tensors[name].detach().cpu().resolve_conj().resolve_neg().contiguous()
        stop = start + tensor.nbytes
        entries[name] = {
            "dtype": kinds[tensor.dtype][1],
            "shape": list(tensor.shape),
            "data_offsets": [start, stop],
        }
        parts.append(tensor)
        start = stop
    return parts, entries


def _header(entries: Mapping[str, Any], metadata: Mapping[str, str]) -> bytes:
    """Return the length of the header and the header, filled up so that tensors are aligned."""
    texts = {"__metadata__": dict(sorted(metadata.items()))} if metadata else {}
    text = json.dumps({**texts, **entries}, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % LENGTH_BYTES)
    return len(text).to_bytes(LENGTH_BYTES, "little") + text


def _put(path: Path, header: bytes, parts: list[Tensor]) -> None:
    with path.open("wb") as file:
        file.write(header)
        for part in parts:
            file.write(_bytes(part))


def _bytes(tensor: Tensor) -> memoryview:
    return tensor.reshape(-1).view(torch.uint8).numpy().data
