"""Plain values of foreign ones: ids and counts that clients sent, and text that is fit to be shown.

A foreign value may be anything: a number of 5,000 digits, which Python does not print, or an object
whose own methods raise. Nothing here raises, and no method that a foreign class has written is
called to find out what a value looks like.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

LONGEST_ID = 255
"""Most characters of an id; no file's name is longer."""
SMALLEST_ID, LARGEST_ID = -(2**63), 2**64 - 1
"""Integer ids are 64-bit numbers, signed or not."""


def plain_integer(value: Any) -> int | None:
    """Return a whole number as a plain int; None of anything else, of True and False too.

    >>> plain_integer(np.int8(3)), plain_integer(True), plain_integer(3.0)
    (3, None, None)
    """
    if issubclass(type(value), int):
        return None if type(value) is bool else int.__index__(value)
    number = np.generic.item(value) if issubclass(type(value), np.integer) else None
    return number if type(number) is int else None


def plain_id(value: Any) -> int | str | None:
    r"""Return an id as a plain 64-bit integer or printable text; None if it is neither.

    An admitted id is in every report, so it must be fit to be shown as it is: no escape sequence
    of a terminal, no line break, no more than ``LONGEST_ID`` characters.

    >>> plain_id("clinic 7"), plain_id("a\nb"), plain_id(2**64)
    ('clinic 7', None, None)
    """
    if issubclass(type(value), str):
        text = str.__str__(value)
        return text if 1 <= len(text) <= LONGEST_ID and text.isprintable() else None
    number = plain_integer(value)
    return number if number is not None and SMALLEST_ID <= number <= LARGEST_ID else None


def shown(value: Any, most: int = 40) -> str:
    r"""Say in one short line what a foreign value is: a number or text itself, else its type.

    >>> shown(10**5000), shown("a\nb"), shown([10**5000])
    ('a number of 16610 bits', "'a\\nb'", 'a list')
    """
    exact = type(value)
    if exact is int:
        bits = value.bit_length()
        return str(value) if bits <= 64 else f"a number of {bits} bits"
    if exact is str or exact is bytes:
        return sanitize(repr(value[:most]), most)
    if exact in (bool, float, type(None)):
        return repr(value)
    return f"a {kind(value)}"


def message(error: BaseException) -> str:
    """Return what an error says in one short line; its name where it says nothing."""
    try:
        says = str.__str__(str(error))
    except Exception:
        says = ""
    return sanitize(says) or kind(error)


def error_text(error: BaseException) -> str:
    """Return the name of an error and what it says."""
    return f"{kind(error)}: {message(error)}"


def plain_json(value: Any) -> Any:
    """Return a value that JSON can hold, without NaN and infinities, which it cannot: null.

    Numbers and arrays of NumPy and PyTorch become numbers and lists, tuples become lists, and
    anything else what it says of itself. This is for what the server's own code reports.

    >>> plain_json({"loss": float("nan"), "marks": (1, np.float32(0.5)), 7: np.arange(2)})
    {'loss': None, 'marks': [1, 0.5], '7': [0, 1]}
    """
    if value is None or isinstance(value, bool | str) or is_short(value):
        return value
    if isinstance(value, Mapping):
        return {
            key if isinstance(key, str) else shown(key): plain_json(value[key]) for key in value
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_json(item) for item in value]
    if isinstance(value, np.generic | np.ndarray | Tensor):
        return plain_json(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return shown(value) if isinstance(value, int) else sanitize(str(value))


def is_short(value: Any) -> bool:
    """Say whether a value is an integer of 64 bits or fewer, which every reader can hold."""
    return isinstance(value, int) and value.bit_length() <= 64


def sanitize(text: str, most: int = 200) -> str:
    """Return foreign text in one short line, without anything that a terminal or log obeys."""
    line = "".join(c if c.isprintable() else "?" for c in text[:most])
    return line if len(text) <= most else line + " ..."


def kind(value: Any) -> str:
    """Return the name of a value's class, which a metaclass of its own may refuse to tell."""
    try:
        return sanitize(str.__str__(type(value).__name__), 40)
    except Exception:
        return "nameless object"
