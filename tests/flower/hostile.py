"""Nodes that reply with anything at all, drawn from a seed."""

import io
import math

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from tests.flower.fake_grid import model_in

INTEGERS = (0, 1, -1, 7, 10, 2**31, 2**62, 2**63, 2**64 - 1, -(2**63), 10**400, 10**5000)
FLOATS = (0.0, -0.0, 1.0, 10.0, 0.5, 1e30, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan)
NAMES = (
    "arrays", "metrics", "config", "other", "w", "b", "loss", "num-examples", "", "\x1b[31m", "\n",
    "a" * 5000, "\ud800", "__proto__", "=1+1", "defense-admitted", "<script>",
)  # fmt: skip
DTYPES = ("<f4", "<f8", "<f2", ">f4", "<i8", "<u2", "|b1", "<c8", "|O", "<U4", "|S3", "<g", "<f16")
ERRORS = (ValueError, KeyError, IndexError, TypeError, RecursionError, MemoryError, StopIteration)


class Hostile:
    """What hostile nodes reply, one thing after another; the same seed, the same replies."""

    def __init__(self, seed):
        self.draw = np.random.default_rng(seed)

    def check_choice(self, *things):
        return things[self.draw.integers(len(things))]

    def reply(self, message):
        """Return a reply, or a function that raises as Flower does when it cannot unpack one."""
        kind = self.check_choice(
            "content", "content", "content", "content", "error", "unreadable", "no"
        )
        if kind == "error":
            answer = Message(Error(self.check_choice(0, 2, 10**9), self._name()), reply_to=message)
        elif kind == "unreadable":
            return self._raising()
        else:
            answer = Message(self.content(message), reply_to=message)
            if kind == "no":
                answer.__dict__["_content"] = self.check_choice(None, 3, "text", MetricRecord())
        if self.draw.random() < 0.3:
            answer.metadata.__dict__["_reply_to_message_id"] = str(self.draw.integers(60))
        if self.draw.random() < 0.3:
            answer.metadata.__dict__["_src_node_id"] = int(
                self.check_choice(0, 1, 3, 2**63, 2**64 - 1)
            )
        return answer

    def content(self, message):
        records = {}
        for _ in range(self.draw.integers(5)):
            make = self.check_choice(self._metrics, self._metrics, self._config)
            records[self._name()] = make()
        if self.draw.random() < 0.5:
            records["metrics"] = self._metrics()
        if self.draw.random() < 0.8:
            records[self.check_choice("arrays", "arrays", "arrays", self._name())] = self._model(
                message
            )
        return RecordDict(records)

    def _raising(self):
        error = self.check_choice(*ERRORS)(self._name())

        def letter():
            raise error

        return letter

    def _name(self):
        return self.check_choice(*NAMES)

    def _number(self):
        return (
            self.check_choice(*INTEGERS) if self.draw.random() < 0.5 else self.check_choice(*FLOATS)
        )

    def _metrics(self):
        found = {}
        for _ in range(self.draw.integers(4)):
            number = self._number()
            found[self._name()] = self.check_choice(
                number, number, [number] * self.draw.integers(4)
            )
        if self.draw.random() < 0.7:
            found["num-examples"] = self.check_choice(10, 10.0, self._number(), [10])
        if self.draw.random() < 0.5:
            found["loss"] = self.check_choice(1.0, self._number(), [], [1.0, 2.0])
        return MetricRecord(found)

    def _config(self):
        values = (True, 3, 2.5, "text", b"\0" * 100_000, ["a"] * 1000, [b"x"], [])
        return ConfigRecord({self._name(): self.check_choice(*values) for _ in range(3)})

    def _model(self, message):
        model = {name: Array(array) for name, array in model_in(message).items()}
        for name in list(model):
            kind = self.check_choice("kept", "kept", "kept", "kept", "changed", "changed", "gone")
            if kind == "gone":
                del model[name]
            elif kind == "changed":
                model[name] = self._array(model[name])
        if self.draw.random() < 0.1:
            model[self._name()] = Array(np.ones(2, np.float32))
        return ArrayRecord(model)

    def _array(self, array):
        kind = self.check_choice("values", "dtype", "header", "cut", "bytes", "flip", "stype")
        data = bytearray(array.data)
        if kind == "values":
            values = array.numpy() * 0 + np.float32(
                self.check_choice(0, 1e30, 3e38, np.nan, np.inf)
            )
            data = _npy(values)
        elif kind == "dtype":
            data = _npy(array.numpy(), self.check_choice(*DTYPES))
        elif kind == "header":
            text = self.check_choice(
                "{'descr': '<f4', 'fortran_order': False, 'shape': (10**9, 10**9)}",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}",
                "{'descr': '<f4', 'fortran_order': True, 'shape': (-1, -6)}",
                "{'descr': '<f4', 'fortran_order': 3, 'shape': ()}",
                "{'descr': [('a', '<f4', (9999,))], 'fortran_order': False, 'shape': (2, 3)}",
                "-" * 9000 + "1", "[" * 9000, "__import__('os').abort()", "",
            )  # fmt: skip
            head = text.encode() + b"\n"
            data = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + bytes(24)
        elif kind == "cut":
            data = data[: self.draw.integers(len(data))]
        elif kind == "bytes":
            data = self.draw.bytes(self.draw.integers(200))
        elif kind == "flip":
            data[self.draw.integers(len(data))] ^= 1 << int(self.draw.integers(8))
        stype = (
            self.check_choice("pickle", "", "numpy.ndarray ") if kind == "stype" else array.stype
        )
        return Array(str(array.dtype), tuple(array.shape), stype, bytes(data))


def _npy(values, descr=None):
    file = io.BytesIO()
    np.save(file, values)
    data = file.getvalue()
    return data if descr is None else data.replace(b"'<f4'", b"'" + descr.encode() + b"'")
