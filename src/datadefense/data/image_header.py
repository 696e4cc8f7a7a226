"""What an image says of itself before it is decoded: its format, its mode and its size."""

import io
import warnings
from typing import Any

from datadefense.data.errors import DataError, refusing

FORMATS = ("WEBP", "PNG", "JPEG")
MODES = ("RGB", "L", "1", "P")
MAX_PIXELS = 1 << 22
"""Most pixels of one image, 2048 x 2048; a file of 1 kB can claim 16 million."""
Size = tuple[int, int]
"""Width and height in pixels."""


def opened_image(pillow: Any, content: bytes, where: str, size: Size | None = None) -> Any:
    """Return an image of pillow's, not decoded yet, that has the right size.

    Args:
        pillow: the module ``PIL.Image``.
        content: the bytes of the file.
        where: what an error begins with.
        size: the width and height it must have; None allows any of at most ``MAX_PIXELS``.
    """
    with refusing(f"{where}: broken image"), warnings.catch_warnings():
        warnings.simplefilter("error", pillow.DecompressionBombWarning)
        image = pillow.open(io.BytesIO(content), formats=FORMATS)
    width, height = image.size
    if size is not None and (width, height) != size:
        raise DataError(
            f"{where}: images must have one size, found {width}x{height}, "
            f"expected {size[0]}x{size[1]}"
        )
    if width * height > MAX_PIXELS:
        raise DataError(
            f"{where}: an image has at most {MAX_PIXELS} pixels, found {width}x{height}"
        )
    return image
