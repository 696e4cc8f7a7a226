"""A round in files: a global model and one safetensors file a client."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from datadefense.gate import Submission
from datadefense.params import Layout
from datadefense.plain import legible

SUFFIX = ".safetensors"
HEADER_SLACK = 1_000_000
"""Bytes by which a client's header may exceed four times the global model's."""


class FileError(ValueError):
    """A file or folder that the caller named and that cannot be used."""


@dataclass(frozen=True, slots=True, eq=False)
class TensorFile:
    """A safetensors file that was read: tensors in the order of its bytes, metadata, header size.

    The order is the file's, never that of a hash table: a state is only good for one order.
    """

    tensors: dict[str, Tensor]
    metadata: dict[str, str]
    header_bytes: int


def read_tensors(
    path: Path, most_bytes: int | None = None, most_header_bytes: int | None = None
) -> TensorFile:
    """Read a safetensors file whole, not mapped: what happens to it later does not matter.

    A file larger than ``most_bytes``, or with a larger header, is refused before it is read.
    """
    if not path.is_file():
        raise FileError(f"{path} is not a file")
    try:
        size = path.stat().st_size
        if most_bytes is not None and size > most_bytes:
            raise FileError(f"file has {size} bytes, expected <= {most_bytes}")
        with path.open("rb") as file:
            header = int.from_bytes(file.read(8), "little")
            if most_header_bytes is not None and header > most_header_bytes:
                raise ValueError(f"header of {header} bytes, expected <= {most_header_bytes}")
            file.seek(0)
            content = file.read()
        tensors = load(content)
        entries = json.loads(content[8 : 8 + header])
        metadata = entries.pop("__metadata__", {})
    except (SafetensorError, OSError, ValueError, KeyError, RuntimeError, RecursionError) as error:
        if isinstance(error, FileError):
            raise
        why = legible(str(error))
        raise FileError(f"{path.name} is not a readable safetensors file: {why}") from error
    names = sorted(tensors, key=lambda name: (entries[name]["data_offsets"][0], name))
    return TensorFile({name: tensors[name] for name in names}, metadata, header)


def read_submissions(
    folder: Path, model: TensorFile, layout: Layout, default_examples: int | None = None
) -> Iterator[Submission]:
    """Yield one submission a file, by name, reading each only when it is asked for.

    Every file that is not hidden counts, whatever its ending: one that is not safetensors, or much
    larger than the global model, comes with the error in place of its content. The client's id is
    the file's name without ".safetensors"; its ``num_examples`` is read from the file's metadata.
    """
    most_header = 4 * model.header_bytes + HEADER_SLACK
    most = sum(t.nbytes for t in model.tensors.values()) + payload(layout) + most_header
    for path in client_files(folder):
        client = path.name.removesuffix(SUFFIX)
        try:
            file = read_tensors(path, most, most_header)
        except FileError as error:
            yield Submission(client, error, None)
            continue
        yield Submission(client, file.tensors, _examples(file.metadata, default_examples))


def client_files(folder: Path) -> list[Path]:
    """Return the files of a folder that count as clients, in the order of their names."""
    if not folder.is_dir():
        raise FileError(f"{folder} is not a folder")
    return sorted(
        path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")
    )


def payload(layout: Layout) -> int:
    """Return the bytes of a model's vector in its own dtypes: no useful file is smaller."""
    return sum((slot.stop - slot.start) * slot.dtype.itemsize for slot in layout.slots)


def _examples(metadata: dict[str, str], default: int | None) -> int | str | None:
    text = metadata.get("num_examples")
    if text is None:
        return default
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else text
