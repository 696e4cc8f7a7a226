import base64
import math
import struct

import numpy as np
import pytest

from datadefense.report.packing import (
    MISSING,
    pack_bits,
    pack_floats,
    pack_levels,
    pack_shorts,
    rounded,
)


def unpack_floats(text):
    """Do as decode.js does, a number at a time."""
    raw = base64.b64decode(text)
    return [struct.unpack("<f", b"\0" + raw[i : i + 3])[0] for i in range(0, len(raw), 3)]


def test_floats_keep_five_digits_and_what_is_special():
    values = [0.0, 1.0, -0.1234567, 1e-30, 3.3e38, 65504.123, math.inf, -math.inf]
    back = unpack_floats(pack_floats(values))
    assert back[0] == 0
    assert back[-2:] == [math.inf, -math.inf]
    assert back[:-2] == pytest.approx(values[:-2], rel=1e-5)
    assert math.isnan(unpack_floats(pack_floats([math.nan]))[0])
    assert unpack_floats(pack_floats([1e300])) == [math.inf]


def test_no_small_weight_becomes_none():
    values = np.random.default_rng(0).uniform(1e-9, 1e-3, 1000)
    assert min(unpack_floats(pack_floats(values))) > 0


def test_levels_are_the_nearest_of_255():
    values = [0.0, 0.5, 1.0, 0.123, math.nan, 2.0, -1.0]
    levels = list(base64.b64decode(pack_levels(values, 0, 1)))
    assert levels == [0, 127, 254, round(0.123 * 254), MISSING, 254, 0]
    assert list(base64.b64decode(pack_levels([5.0], 5, 5))) == [0]


def test_shorts_and_bits():
    raw = base64.b64decode(pack_shorts([[1, 256], [65535, 0]]))
    assert struct.unpack("<4H", raw) == (1, 256, 65535, 0)
    bits = [True, False, False, True, False, False, False, False, True]
    assert [f"{byte:08b}" for byte in base64.b64decode(pack_bits(bits))] == ["10010000", "10000000"]


def test_short_numbers():
    assert rounded([1 / 3, None, math.inf, math.nan, 250.0, 1e-9]) == [
        0.3333,
        None,
        None,
        None,
        250,
        1e-9,
    ]
