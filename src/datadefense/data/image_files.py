"""Single images as files: PNG to write, PNG, JPEG and WEBP to read."""

import io
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from datadefense.data.errors import DataError, one_line
from datadefense.data.parquet import FORMATS, MODES


def to_png(pixels: UInt8[Tensor, "channels height width"]) -> bytes:
    """Return an image as PNG."""
    buffer = io.BytesIO()
    array = np.ascontiguousarray(pixels.permute(1, 2, 0).squeeze(-1).numpy())
    extra("PIL.Image").fromarray(array).save(buffer, "PNG")
    return buffer.getvalue()


def from_file(content: bytes, where: str) -> UInt8[Tensor, "channels height width"]:
    """Return the pixels of a PNG, JPEG or WEBP file; an error begins with ``where``."""
    pillow = extra("PIL.Image")
    try:
        image = pillow.open(io.BytesIO(content), formats=FORMATS)
        mode = image.mode
        pixels = np.array(image.convert("L" if mode in ("L", "1") else "RGB"))
    except Exception as error:  # pillow's decoders raise almost anything on broken bytes
        raise DataError(f"{where}: broken image: {one_line(error)}") from error
    if mode not in MODES:
        raise DataError(f"{where}: cannot use an image of mode {mode}, save it as RGB")
    return torch.from_numpy(np.atleast_3d(pixels)).permute(2, 0, 1)


def stack(images: Sequence[Tensor], places: Sequence[str]) -> UInt8[Tensor, "n channels h w"]:
    """Return images of one size as one tensor, with three channels if any has them."""
    height, width = images[0].shape[1:]
    for image, where in zip(images, places, strict=True):
        if image.shape[1:] != (height, width):
            raise DataError(
                f"{where}: images must have one size, found {image.shape[2]}x{image.shape[1]} "
                f"after {width}x{height}"
            )
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
