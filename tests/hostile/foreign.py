"""What clients may send in the place of an id, a count and a model: good, bad and malicious."""

import numpy as np
import torch

from datadefense.testing.toy import CLASSES, FEATURES

SHAPES = {"w": (CLASSES, FEATURES), "b": (CLASSES,)}
LARGEST = 10**5000


class Raises:
    """An object of which every question raises."""

    def _raise(self, *_):
        raise RuntimeError("\x1b[2Jno\nanswer")

    __repr__ = __str__ = __eq__ = __hash__ = __len__ = __iter__ = __getitem__ = _raise
    __bool__ = __index__ = __int__ = __float__ = __lt__ = __le__ = __ge__ = __gt__ = _raise
    __array__ = _raise


class RaisingText(str):
    """A text of which some questions raise."""

    __slots__ = ()

    def __eq__(self, other):
        raise RuntimeError("no")

    __hash__ = str.__hash__


class UntoldError(Exception):
    """An error that cannot be told."""

    def __str__(self):
        raise RuntimeError("no")


GOOD_IDS = {
    "number": lambda place: place,
    "text": lambda place: f"clinic {place}",
    "numpy": lambda place: np.int64(10_000 + place),
    "largest": lambda place: 2**64 - 1 - place,
    "smallest": lambda place: -(2**63) + place,
    "markup": lambda place: f"[red]<script>{place}",
}
BAD_IDS = {
    "none": None,
    "true": True,
    "float": 1.5,
    "huge": LARGEST,
    "tuple": (LARGEST,),
    "above": 2**64,
    "newline": "a\nround 1: client 'c' rejected",
    "escape": "\x1b]0;owned\x07",
    "empty": "",
    "long": "x" * 100_000,
    "bytes": b"a",
    "raises": Raises(),
    "surrogate": "a\ud800",
    "turned": "abc\u202edef",
    "list": [],
    "array": np.zeros(3),
}
GOOD_COUNTS = {"one": 1, "ten": 10, "many": 420, "most": 1_000_000, "numpy": np.int32(7)}
BAD_COUNTS = {
    "none": None,
    "zero": 0,
    "negative": -5,
    "float": 1e30,
    "nan": float("nan"),
    "true": True,
    "text": "10",
    "huge": LARGEST,
    "list": [LARGEST],
    "above": 2**62,
    "minus huge": -LARGEST,
    "raises": Raises(),
    "array": np.array([1, 2]),
    "tensor": torch.tensor(5),
}


def named(draw, scale=0.01):
    return {name: scale * torch.randn(shape, generator=draw) for name, shape in SHAPES.items()}


def filled(value):
    return {name: torch.full(shape, value) for name, shape in SHAPES.items()}


def spike(draw, value):
    update = named(draw)
    update["w"][int(torch.randint(CLASSES, (), generator=draw)), 0] = value
    return update


def clone(_draw):
    return named(torch.Generator().manual_seed(0))


def near_clone(_draw):
    return {name: tensor * (1 + 1e-6) for name, tensor in clone(None).items()}


def read_only(draw):
    arrays = {name: tensor.numpy() for name, tensor in named(draw).items()}
    for array in arrays.values():
        array.flags.writeable = False
    return arrays


def with_gradient(draw):
    return {name: tensor.requires_grad_() for name, tensor in named(draw).items()}


GOOD_CONTENTS = {
    "honest": named,
    "again honest": named,
    "loud": lambda draw: named(draw, 10.0),
    "huge": lambda draw: named(draw, 1e30),
    "largest": lambda draw: filled(3.4e38),
    "most negative": lambda draw: filled(-3.4e38),
    "smallest": lambda draw: filled(1e-45),
    "zero": lambda draw: filled(0.0),
    "minus zero": lambda draw: filled(-0.0),
    "spike": lambda draw: spike(draw, 1e38),
    "clone": clone,
    "near clone": near_clone,
    "vector": lambda draw: torch.cat([tensor.flatten() for tensor in named(draw).values()]),
    "numpy": lambda draw: {name: tensor.numpy() for name, tensor in named(draw).items()},
    "read-only": read_only,
    "strided": lambda draw: {
        k: v.repeat_interleave(2, -1)[..., ::2] for k, v in named(draw).items()
    },
    "gradient": with_gradient,
}
BAD_CONTENTS = {
    "nan": lambda draw: spike(draw, float("nan")),
    "infinite": lambda draw: spike(draw, float("-inf")),
    "shape": lambda draw: {**named(draw), "b": torch.zeros(CLASSES, 1)},
    "missing": lambda draw: {"w": torch.zeros(SHAPES["w"])},
    "extra": lambda draw: {**named(draw), "\x1b[2J\n": torch.zeros(1)},
    "many extra": lambda draw: {**named(draw), **{"x" * 500 + str(j): 1 for j in range(50)}},
    "float64": lambda draw: {name: tensor.double() for name, tensor in named(draw).items()},
    "half": lambda draw: {name: tensor.half() for name, tensor in named(draw).items()},
    "integers": lambda draw: {name: tensor.int() for name, tensor in named(draw).items()},
    "complex": lambda draw: {name: tensor.cfloat() for name, tensor in named(draw).items()},
    "objects": lambda draw: {name: np.full(shape, None) for name, shape in SHAPES.items()},
    "other order": lambda draw: {n: t.numpy().astype(">f4") for n, t in named(draw).items()},
    "sparse": lambda draw: {**named(draw), "w": torch.zeros(SHAPES["w"]).to_sparse()},
    "meta": lambda draw: {n: torch.empty(shape, device="meta") for n, shape in SHAPES.items()},
    "expanded": lambda draw: torch.zeros(1).expand(10**12),
    "no names": lambda draw: {1: torch.zeros(1), Raises: torch.zeros(1)},
    "empty": lambda draw: {},
    "empty vector": lambda draw: torch.zeros(0),
    "none": lambda draw: None,
    "text": lambda draw: "\x1b[2Jmodel\n",
    "list": lambda draw: [0.0] * 603,
    "number": lambda draw: LARGEST,
    "raises": lambda draw: Raises(),
    "raising values": lambda draw: {**named(draw), "b": Raises()},
    "error": lambda draw: RuntimeError("\x1b[2J first\nsecond " + "x" * 10_000),
    "error that cannot be told": lambda draw: UntoldError(),
    "error with a number": lambda draw: ValueError(LARGEST),
    "structured": lambda draw: np.zeros(603, dtype=[("a", "f4")]),
    "dates": lambda draw: np.zeros(603, "M8[s]"),
    "0-d": lambda draw: np.float32(1.0),
}
