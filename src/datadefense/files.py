"""A round in files: a global model and one safetensors file a client."""

from collections.abc import Iterator
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from datadefense.gate import Submission

SUFFIX = ".safetensors"


class FileError(ValueError):
    """A file or folder that the caller named and that cannot be used."""


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read a safetensors file whole: its tensors, in its own order, and its metadata."""
    if not path.is_file():
        raise FileError(f"{path} is not a file")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            return {name: file.get_tensor(name) for name in file.keys()}, metadata  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise FileError(f"{path.name} is not a readable safetensors file: {error}") from error


def read_submissions(folder: Path, default_examples: int | None = None) -> Iterator[Submission]:
    """Yield one submission a file, by name, reading each only when it is asked for.

    Every file that is not hidden counts, whatever its ending: one that is not safetensors comes
    with the error in place of its content. The client's id is the file's name without
    ".safetensors"; its ``num_examples`` is read from the file's metadata.
    """
    for path in client_files(folder):
        client = path.name.removesuffix(SUFFIX)
        try:
            tensors, metadata = read_tensors(path)
        except FileError as error:
            yield Submission(client, error, None)
            continue
        yield Submission(client, tensors, _examples(metadata, default_examples))


def client_files(folder: Path) -> list[Path]:
    """Return the files of a folder that count as clients, in the order of their names."""
    if not folder.is_dir():
        raise FileError(f"{folder} is not a folder")
    return sorted(
        path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")
    )


def _examples(metadata: dict[str, str], default: int | None) -> int | str | None:
    text = metadata.get("num_examples")
    if text is None:
        return default
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else text
