"""Packing: many numbers as few characters, for a page that unpacks them again (``decode.js``)."""

import base64
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

MISSING = 255
"""The level of a number that is not there."""


def pack_floats(values: ArrayLike) -> str:
    """Return numbers in base64, three bytes each: a float32 without its last byte.

    Five digits stay, zero is zero, and what is not there is NaN.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        bits = np.asarray(values, dtype="<f4").ravel().view("<u4")
    infinite = (bits & 0x7F800000) == 0x7F800000
    rounded = np.where(infinite, bits, bits + np.uint32(0x80))
    return _base64(rounded.astype("<u4").view(np.uint8).reshape(-1, 4)[:, 1:])


def pack_levels(values: ArrayLike, low: float, high: float) -> str:
    """Return numbers as one of 255 levels between ``low`` and ``high`` each, one byte a number."""
    array = np.asarray(values, dtype=float)
    scaled = np.clip((array - low) / ((high - low) or 1.0), 0, 1) * (MISSING - 1)
    return _base64(np.where(np.isnan(array), MISSING, scaled.round()).astype(np.uint8))


def pack_shorts(values: ArrayLike) -> str:
    """Return whole numbers from 0 to 65,535 in base64, two bytes each, the low one first."""
    return _base64(np.asarray(values).astype("<u2").view(np.uint8))


def pack_bits(values: ArrayLike) -> str:
    """Return truth values in base64, eight a byte, the first in the highest bit."""
    return _base64(np.packbits(np.asarray(values, dtype=bool).ravel()))


def rounded(values: Iterable[float | None], digits: int = 4) -> list[float | None]:
    """Return numbers with few digits; None for what is missing or not finite.

    >>> rounded([0.123456, None, float("nan"), 12.0])
    [0.1235, None, None, 12]
    """
    return [_short(value, digits) for value in values]


def _short(value: Any, digits: int) -> float | None:
    if value is None or not np.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() else short


def _base64(array: NDArray[np.uint8]) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
