"""Parquet in the Hugging Face layout: images as structs {bytes, path}, or texts, with labels.

One reader serves the hub's files, a folder of them and what ``write_images`` writes. Decoded images
are kept in a cache folder (``DATADEFENSE_CACHE``, else ``~/.cache/datadefense``) as safetensors,
which come back as a private map of that file: at once, and paged in where they are used.
"""

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import UInt8
from safetensors import SafetensorError, safe_open
from torch import Tensor

from datadefense.core.examples import Examples
from datadefense.core.storage import save_tensors, write_atomically
from datadefense.data.cache import cache_folder
from datadefense.data.errors import DataError, one_line, refusing
from datadefense.data.image_header import MODES, Size, opened_image
from datadefense.data.parquet_table import (
    arrow_module,
    check_growth,
    extra_missing,
    open_parquet,
    read_table,
)

CACHE_FORMAT = "datadefense-images-1"


def read_images(
    paths: Path | Sequence[Path],
    image_column: str,
    label_column: str,
    *,
    channels: Literal[1, 3] | None = None,
    size: Size | None = None,
) -> Examples:
    """Read images of one size as uint8 [N, C, H, W], and their labels as int64.

    ``size`` is the width and height that they must have; by default, that of the first. A set in
    which every image is grey has one channel, however its files store it; ``channels`` asks for a
    number of them instead (1 is an error if there is colour).
    """
    files = _files(paths)
    stored = _cache_file(files, (image_column, label_column))
    examples = _from_cache(stored)
    if examples is None:
        examples = _read_images(files, image_column, label_column, size)
        _to_cache(stored, examples)
    found, height, width = examples.inputs.shape[1:]
    if size not in (None, (width, height)):  # a cache that another reader has filled
        raise DataError(f"{_names(files)}: found images of {width}x{height}, expected {size}")
    if channels == 1 and found == 3:
        raise DataError(f"{_names(files)}: expected grey images, found colour")
    if channels == 3 and found == 1:
        return Examples(examples.inputs.repeat(1, 3, 1, 1), examples.labels)
    return examples


def read_texts(
    paths: Path | Sequence[Path], text_column: str, label_column: str
) -> tuple[list[str], Tensor]:
    """Read texts and their labels, int64, as they are in the file."""
    texts: list[str] = []
    labels: list[Tensor] = []
    for path in _files(paths):
        table = read_table(path, text_column, label_column)
        with refusing(f"{path}: {text_column!r} holds broken text"):
            column = table.column(text_column).to_pylist()
        if not all(isinstance(text, str) for text in column):
            raise DataError(f"{path}: {text_column!r} must hold a text in every row")
        texts += column
        labels.append(_labels(path, table, label_column))
    return texts, torch.cat(labels)


def column_names(path: Path) -> list[str]:
    """Return the names of a file's columns, without reading them."""
    with open_parquet(path) as table:
        return table.names


def count_rows(paths: Path | Sequence[Path]) -> int:
    """Return the number of rows by the files' own statement, without reading them."""
    rows = 0
    for path in _files(paths):
        with open_parquet(path) as table:
            rows += table.num_rows
    return rows


def write_images(path: Path, examples: Examples, image_column: str, label_column: str) -> None:
    """Write uint8 images [N, C, H, W], as PNG, and their labels to one file, atomically."""
    try:
        from PIL import Image  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise extra_missing(error) from error
    contents: list[dict[str, object]] = []
    for pixels in examples.inputs.permute(0, 2, 3, 1).squeeze(-1).numpy():
        buffer = io.BytesIO()
        Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "PNG")
        contents.append({"bytes": buffer.getvalue(), "path": None})
    labels = examples.labels.tolist()
    _write(path, {image_column: contents, label_column: labels}, image_column)


def write_texts(path: Path, columns: Mapping[str, Sequence[str] | Sequence[int]]) -> None:
    """Write columns of texts and integers to one file, atomically."""
    _write(path, columns, None)


def _files(paths: Path | Sequence[Path]) -> tuple[Path, ...]:
    files = (paths,) if isinstance(paths, Path) else tuple(paths)
    if not files:
        raise DataError("no parquet file was given")
    return files


def _names(files: tuple[Path, ...]) -> str:
    return str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"


def _labels(path: Path, table: Any, label_column: str) -> Tensor:
    column = table.column(label_column)
    if column.null_count:
        raise DataError(f"{path}: {label_column!r} has {column.null_count} empty rows")
    with refusing(f"{path}: {label_column!r} holds no labels"):
        return torch.from_numpy(column.to_numpy().astype(np.int64))


def _read_images(
    files: tuple[Path, ...], image_column: str, label_column: str, size: Size | None
) -> Examples:
    images: list[Tensor] = []
    labels: list[Tensor] = []
    for path in files:
        table = read_table(path, image_column, label_column)
        kind = table.schema.field(image_column).type
        if not hasattr(kind, "get_field_index") or kind.get_field_index("bytes") < 0:
            raise DataError(f"{path}: {image_column!r} must be a struct {{bytes, path}}, is {kind}")
        with refusing(f"{path} is not a readable parquet file"):
            contents = [
                content for chunk in table.column(image_column).chunks
                for content in chunk.field("bytes").to_pylist()
            ]  # fmt: skip
        images.append(_decode(path, contents, size))
        labels.append(_labels(path, table, label_column))
    sizes = {tuple(part.shape[2:]) for part in images}
    if len(sizes) > 1:
        raise DataError(f"{_names(files)}: images must have one size, found {sorted(sizes)}")
    inputs = torch.cat(images) if len(images) > 1 else images[0]
    if all(torch.equal(inputs[:, 0], inputs[:, other]) for other in (1, 2)):
        inputs = inputs[:, :1].contiguous()
    return Examples(inputs, torch.cat(labels))


def _decode(path: Path, contents: list[object], size: Size | None) -> UInt8[Tensor, "n 3 h w"]:
    try:
        from PIL import Image  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise extra_missing(error) from error
    decoded = np.empty((0, 3, 0, 0), np.uint8)
    for row, content in enumerate(contents):
        where = f"{path}, row {row}"
        if not isinstance(content, bytes):
            raise DataError(f"{where}: the image has no bytes")
        image = opened_image(Image, content, where, size)
        if image.mode not in MODES:
            raise DataError(f"{where}: cannot use an image of mode {image.mode}")
        if row == 0:
            size = width, height = image.size
            check_growth(str(path), 3 * width * height * len(contents), path.stat().st_size)
            decoded = np.empty((len(contents), 3, height, width), np.uint8)
        with refusing(f"{where}: broken image"):
            pixels = (image if image.mode == "RGB" else image.convert("RGB")).tobytes()
            flat = np.frombuffer(pixels, np.uint8)
            decoded[row] = flat.reshape(height, width, 3).transpose(2, 0, 1)
    return torch.from_numpy(decoded)


def _cache_file(files: tuple[Path, ...], columns: tuple[str, ...]) -> Path:
    stamps: list[tuple[str, int, int]] = []
    for path in files:
        if not path.is_file():
            raise DataError(f"{path} is not a file")
        facts = path.stat()
        stamps.append((str(path.resolve()), facts.st_size, facts.st_mtime_ns))
    key = hashlib.sha256(json.dumps([CACHE_FORMAT, columns, stamps]).encode()).hexdigest()
    return (
        cache_folder() / "images" / f"{files[0].parent.name}-{files[0].stem}-{key[:16]}.safetensors"
    )


def _from_cache(path: Path) -> Examples | None:
    try:
        with safe_open(path, framework="pt") as file:
            images, labels = file.get_tensor("images"), file.get_tensor("labels")
    except (SafetensorError, OSError, ValueError, RuntimeError):
        return None  # absent or broken: it is made anew
    sound = images.dtype == torch.uint8 and images.ndim == 4 and len(images) == len(labels)
    return Examples(images, labels) if sound and labels.dtype == torch.int64 else None


def _to_cache(path: Path, examples: Examples) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        tensors = {"images": examples.inputs, "labels": examples.labels}
        save_tensors(path, tensors, {"format": CACHE_FORMAT})
    except (SafetensorError, OSError):
        return  # a full disk or a read-only home costs only time


def _write(path: Path, columns: Mapping[str, Any], image_column: str | None) -> None:
    arrow = arrow_module()
    image = arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])
    arrays = {
        name: arrow.array(column, image if name == image_column else None)
        for name, column in columns.items()
    }
    features = {
        name: {"_type": "Image"}
        if name == image_column
        else {"_type": "Value", "dtype": str(array.type)}
        for name, array in arrays.items()
    }
    described = {"huggingface": json.dumps({"info": {"features": features}})}
    table = arrow.table(arrays).replace_schema_metadata(described)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(
            path, lambda part: arrow.parquet.write_table(table, part, row_group_size=5000)
        )
    except OSError as error:
        raise DataError(f"{path} cannot be written: {one_line(error)}") from error
