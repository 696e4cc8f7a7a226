"""Single images as files: PNG to write, PNG, JPEG and WEBP to read."""

import io
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from datadefense.data.errors import DataError, refusing
from datadefense.data.file_content import read_at_most
from datadefense.data.image_header import MODES, Size, opened_image

MAX_FILE = 1 << 26
"""Most bytes of one image file."""


def to_png(pixels: UInt8[Tensor, "channels height width"]) -> bytes:
    """Return an image as PNG."""
    buffer = io.BytesIO()
    array = np.ascontiguousarray(pixels.permute(1, 2, 0).squeeze(-1).numpy())
    extra("PIL.Image").fromarray(array).save(buffer, "PNG")
    return buffer.getvalue()


def from_file(
    content: bytes, where: str, size: Size | None = None
) -> UInt8[Tensor, "channels height width"]:
    """Return the pixels of a PNG, JPEG or WEBP file; an error begins with ``where``.

    ``size`` is (width, height) that the image must have: another is not decoded.
    """
    image = opened_image(extra("PIL.Image"), content, where, size)
    if image.mode not in MODES:
        raise DataError(f"{where}: cannot use an image of mode {image.mode}, save it as RGB")
    with refusing(f"{where}: broken image"):
        pixels = np.array(image.convert("L" if image.mode in ("L", "1") else "RGB"))
    return torch.from_numpy(np.atleast_3d(pixels)).permute(2, 0, 1)


def read_image_file(path: Path, size: Size) -> UInt8[Tensor, "channels height width"]:
    """Return the pixels of an image file, which must have this (width, height)."""
    return from_file(read_at_most(path, MAX_FILE), str(path), size)


def stack(images: Sequence[Tensor]) -> UInt8[Tensor, "n channels h w"]:
    """Return images of one size as one tensor, with three channels if any has them."""
    channels = max(image.shape[0] for image in images)
    return torch.stack([image.expand(channels, -1, -1) for image in images])


def extra(name: str) -> Any:
    """Import a module that comes with the extra ``data``."""
    try:
        return import_module(name)
    except ImportError as error:
        raise DataError(
            f"a defense set's folder needs {error.name}: pip install 'datadefense[data]'"
        ) from error
