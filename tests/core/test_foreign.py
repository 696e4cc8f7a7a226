import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from datadefense.core.foreign import error_text, message, plain_json, sanitize, shown


class MuteError(Exception):
    def __str__(self):
        raise RuntimeError("no")


class Nameless(type):
    @property
    def __name__(cls):
        raise RuntimeError("no")


def test_what_foreign_values_look_like():
    assert shown(2**64 - 1) == "18446744073709551615"
    assert shown(2**64) == "a number of 65 bits"
    assert shown(-(10**5000)) == "a number of 16610 bits"
    assert shown("x" * 10**6) == "'" + "x" * 39 + " ..."
    assert shown(b"\x1b") == "b'\\x1b'"
    assert [shown(value) for value in (None, True, 1.5)] == ["None", "True", "1.5"]
    assert shown({10**5000: 1}) == "a dict"
    assert shown(Nameless("N", (), {})()) == "a nameless object"


def test_errors_are_told_whatever_they_say():
    assert error_text(ValueError("a\x1b[2J\nb")) == "ValueError: a?[2J?b"
    assert error_text(MuteError()) == "MuteError: MuteError"
    assert message(OSError("lost")) == "lost"
    assert len(message(ValueError("x" * 10**6))) < 210
    assert sanitize("\u202etext\ud800") == "?text?"


def test_json_values():
    value = {
        "nan": math.nan,
        "infinite": [math.inf, -math.inf, 1.5],
        "tensor": torch.tensor([1.0, math.nan]),
        "numpy": (np.float64("nan"), np.int32(3), np.bool_(True)),
        "huge": 10**5000,
        "path": Path("a"),
        3: None,
    }
    assert json.loads(json.dumps(plain_json(value), allow_nan=False)) == {
        "nan": None,
        "infinite": [None, None, 1.5],
        "tensor": [1.0, None],
        "numpy": [None, 3, True],
        "huge": "a number of 16610 bits",
        "path": "a",
        "3": None,
    }


@pytest.mark.parametrize("text", ["", "plain", "é"])
def test_what_is_legible_stays(text):
    assert sanitize(text) == text
