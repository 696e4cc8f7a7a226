"""A round in files: a global model and one safetensors file a client.

A client may change its file at any moment: after the folder was listed, while the file is read.
Whatever it does to it is a matter of that client alone, and the round goes on with the rest.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from datadefense.core.errors import DataDefenseError
from datadefense.core.foreign import message
from datadefense.core.gate import Submission
from datadefense.core.predictor import Layout
from datadefense.core.tensor_file import TensorFile, parse, read_content

SUFFIX = ".safetensors"
HEADER_SLACK = 1_000_000
"""Bytes by which a client's header may exceed four times the global model's."""


class FileError(DataDefenseError, ValueError):
    """A file or folder that the caller named and that cannot be used."""


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A client's file as it was when the folder was listed; of no size if that could not be told.

    How many places a round has is decided by these sizes, so a file that has another size when it
    is read is turned away: it could take the place of another client.
    """

    path: Path
    size: int
    same_as: str | None = None
    """Name of the file that this is another name of, a link to it."""


def read_tensors(
    path: Path,
    most_bytes: int | None = None,
    most_header_bytes: int | None = None,
    listed_bytes: int | None = None,
) -> TensorFile:
    """Read a safetensors file whole, within the bounds of `read_content`.

    Whatever goes wrong with it, foreseen or not, is a FileError.
    """
    try:
        return parse(read_content(path, most_bytes, most_header_bytes, listed_bytes))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise FileError(f"{path} is not a file") from error
    except Exception as error:
        why = message(error)
        raise FileError(f"{path.name} is not a readable safetensors file: {why}") from error


def read_submissions(
    clients: Sequence[ClientFile],
    model: TensorFile,
    layout: Layout,
    default_examples: int | None = None,
) -> Iterator[Submission]:
    """Yield one submission a file, reading each only when it is asked for.

    A file that is not safetensors, that is much larger than the global model, that is another's
    under a second name, or that is gone or of another size than when it was listed, comes with the
    error in place of its content. The client's id is the file's name without ".safetensors"; its
    ``num_examples`` is read from the file's metadata.
    """
    most_header = 4 * model.header_bytes + HEADER_SLACK
    most = sum(t.nbytes for t in model.tensors.values()) + payload(layout) + most_header
    for client in clients:
        name = client.path.name.removesuffix(SUFFIX)
        try:
            if client.same_as is not None:
                raise FileError(f"{client.path.name} is the same file as {client.same_as}")
            file = read_tensors(client.path, most, most_header, client.size)
            claimed = _examples(file.metadata, default_examples)
        except Exception as error:
            yield Submission(name, error, None)
        else:
            yield Submission(name, file.tensors, claimed)


def client_files(folder: Path) -> list[ClientFile]:
    """Return the files of a folder that count as clients, in the order of their names.

    Every entry that is not hidden and not a folder counts, whatever its name ends with. A file that
    is there under several names counts once, under the first that is no symbolic link: who links
    to another's file does not take its place.
    """
    if not folder.is_dir():
        raise FileError(f"{folder} is not a folder")
    with os.scandir(folder) as entries:
        found = sorted(
            (entry.is_symlink(), entry.name)
            for entry in entries
            if not entry.name.startswith(".") and not entry.is_dir(follow_symlinks=False)
        )
    names: dict[tuple[int, int], str] = {}
    clients: dict[str, ClientFile] = {}
    for _, name in found:
        clients[name] = _listed(folder / name, names)
    return [clients[name] for name in sorted(clients)]


def payload(layout: Layout) -> int:
    """Return the bytes of a model's vector in its own dtypes: no useful file is smaller."""
    return sum((slot.stop - slot.start) * slot.dtype.itemsize for slot in layout.slots)


def _listed(path: Path, names: dict[tuple[int, int], str]) -> ClientFile:
    """Return a file as it is now; ``names`` has the first name of each file."""
    try:
        status = path.stat()
    except OSError:
        return ClientFile(path, 0)
    first = names.setdefault((status.st_dev, status.st_ino), path.name)
    return ClientFile(path, status.st_size, None if first == path.name else first)


def _examples(metadata: dict[str, str], default: int | None) -> int | str | None:
    text = metadata.get("num_examples")
    if text is None:
        return default
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else text
