"""Plain pickles read without Python's unpickler: values, lists, tuples, dicts and numpy's arrays.

A pickle is a program. This reader takes the instructions that plain data is written with, one by
one, and refuses every other. What it builds is a tree by construction: a list, tuple or dict goes
to one place and cannot be asked for again, so none can hold itself or be in two places, and the
work is bounded by the length of the file. How deep the tree is, is known while it is built. Keys
are texts and bytes, whose hashes differ from process to process. Those of numbers can be chosen, so
that a dict of them takes quadratic time; what the pickle numbers itself is in a list.
"""

import io
import pickletools  # nosec B403
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from datadefense.data.pickled_numpy import Array, Dtype, Name, PickleError, known_name

MAX_STEPS = 1_000_000
MAX_DEPTH = 16
MAX_NUMBER = 64
"""Longest integer, in bytes."""
MAX_PROTOCOL = 5
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
NUMBERS = frozenset(("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "FLOAT", "BINFLOAT"))
TEXTS = frozenset(("UNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINUNICODE"))
BYTES = frozenset(("BINBYTES", "BINBYTES8", "SHORT_BINBYTES", "BYTEARRAY8"))
OLD_TEXTS = frozenset(("STRING", "BINSTRING", "SHORT_BINSTRING"))
"""Texts of Python 2, which come as bytes."""
TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
PUTS = frozenset(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"))
GETS = frozenset(("GET", "BINGET", "LONG_BINGET"))


def read_pickle(content: bytes) -> Any:
    """Return the plain data of a pickle, or raise; nothing of it is ever run.

    Arrays come as read-only views, numpy's scalars as Python numbers, and the texts of Python 2 as
    bytes.
    """
    reader = _Reader(len(content))
    for step, (opcode, argument, place) in enumerate(pickletools.genops(io.BytesIO(content))):
        if step >= MAX_STEPS:
            raise PickleError(f"more than {MAX_STEPS} instructions")
        if opcode.name == "STOP":
            break
        reader.obey(opcode.name, argument, place or 0)
    return reader.result()


@dataclass(slots=True)
class _Held:
    """A value on the stack: how deep it is, and whether it holds data only, no name or dtype."""

    value: Any
    depth: int = 0
    plain: bool = True


class _Reader:
    """The stack, the marks on it and the memory of one pickle while it is read."""

    __slots__ = ("filled", "marks", "memory", "spare", "stack")

    def __init__(self, size: int) -> None:
        self.stack: list[_Held] = []
        self.marks: list[int] = []
        self.memory: list[_Held | None] = []
        self.filled = 0  # cells of the memory that hold something
        self.spare = size  # bytes that texts may still be made into

    def obey(self, name: str, argument: Any, place: int) -> None:
        """Do what one instruction asks for, if it is one of plain data."""
        if name in CONSTANTS:
            self.stack.append(_Held(CONSTANTS[name]))
        elif name in NUMBERS:
            self.stack.append(_Held(_number(argument)))
        elif name in TEXTS or name in BYTES:
            self.stack.append(_Held(argument))
        elif name in OLD_TEXTS:
            self.stack.append(_Held(argument.encode("latin-1")))
        elif name in PUTS:
            self._remember(argument)
        elif name in GETS:
            self.stack.append(self._recalled(int(argument)))
        elif name == "MARK":
            self.marks.append(len(self.stack))
        elif name in TUPLES:
            self._push_tuple(self._pop(TUPLES[name]))
        elif name == "TUPLE":
            self._push_tuple(self._pop_marked())
        elif name == "PROTO":
            if not 0 <= int(argument) <= MAX_PROTOCOL:
                raise PickleError(f"protocol {argument}, expected <= {MAX_PROTOCOL}")
        elif name != "FRAME":
            self._contain(name, argument, place)

    def _contain(self, name: str, argument: Any, place: int) -> None:
        """Do what makes or fills lists and dicts, and what calls names."""
        if name == "EMPTY_LIST":
            self.stack.append(_Held([], 1))
        elif name == "EMPTY_DICT":
            self.stack.append(_Held({}, 1))
        elif name == "LIST":
            self._push_filled(_Held([], 1), self._pop_marked())
        elif name == "DICT":
            self._push_filled(_Held({}, 1), self._pop_marked())
        elif name in ("APPEND", "APPENDS"):
            items = self._pop(1) if name == "APPEND" else self._pop_marked()
            self._push_filled(self._popped(list), items)
        elif name in ("SETITEM", "SETITEMS"):
            items = self._pop(2) if name == "SETITEM" else self._pop_marked()
            self._push_filled(self._popped(dict), items)
        elif name == "GLOBAL":
            self._push_name(*str(argument).split(" ", 1))
        elif name == "STACK_GLOBAL":
            self._push_name(*(held.value for held in self._pop(2)))
        elif name == "REDUCE":
            self._call()
        elif name == "BUILD":
            self._build()
        else:
            raise PickleError(f"instruction {name} at byte {place}")

    def result(self) -> Any:
        """Return the one value that is left."""
        (last,) = self._pop(1)
        value, _ = _taken(last, data=True)
        if self.stack or self.marks:
            raise PickleError("values that belong nowhere")
        return value

    def _pop(self, count: int) -> list[_Held]:
        floor = self.marks[-1] if self.marks else 0
        if len(self.stack) - count < floor:
            raise PickleError("an empty stack")
        at = len(self.stack) - count
        popped = self.stack[at:]
        del self.stack[at:]
        return popped

    def _pop_marked(self) -> list[_Held]:
        if not self.marks:
            raise PickleError("a mark that is not there")
        at = self.marks.pop()
        popped = self.stack[at:]
        del self.stack[at:]
        return popped

    def _popped(self, kind: type) -> _Held:
        (held,) = self._pop(1)
        if type(held.value) is not kind:
            raise PickleError(f"no {kind.__name__} where there should be one")
        return held

    def _push_tuple(self, items: Sequence[_Held]) -> None:
        taken = [_taken(held, data=False) for held in items]
        depth = _depth(1, (depth for _, depth in taken))
        plain = all(held.plain for held in items)
        self.stack.append(_Held(tuple(value for value, _ in taken), depth, plain))

    def _push_filled(self, held: _Held, items: Sequence[_Held]) -> None:
        taken = [_taken(item, data=True) for item in items]
        values = [value for value, _ in taken]
        held.depth = _depth(held.depth, (depth for _, depth in taken))
        if isinstance(held.value, list):
            held.value += values
        elif len(values) % 2:
            raise PickleError("a key without a value")
        else:
            keys = [_key(key) for key in values[::2]]
            held.value.update(zip(keys, values[1::2], strict=True))
        self.stack.append(held)

    def _push_name(self, module: object, name: object = None) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise PickleError("a name that is no text")
        self.stack.append(_Held(known_name(module, name), plain=False))

    def _call(self) -> None:
        function, arguments = (held.value for held in self._pop(2))
        if not isinstance(function, Name) or not isinstance(arguments, tuple):
            raise PickleError("a call of something that is no name")
        if function.name == "_codecs.encode" and arguments and isinstance(arguments[0], str):
            self.spare -= len(arguments[0])
            if self.spare < 0:
                raise PickleError("more bytes than the file has")
        made = function.call(*arguments)
        self.stack.append(_Held(made, plain=not isinstance(made, Dtype)))

    def _build(self) -> None:
        held, state = self._pop(2)
        if not isinstance(held.value, Array | Dtype):
            raise PickleError("a change of something that is no array")
        held.value.build(state.value)
        self.stack.append(held)

    def _remember(self, argument: Any) -> None:
        cell = self.filled if argument is None else int(argument)
        if not 0 <= cell <= MAX_STEPS:
            raise PickleError(f"memory cell {cell}")
        (held,) = self._pop(1)
        self.memory += [None] * (cell + 1 - len(self.memory))
        self.filled += self.memory[cell] is None
        self.memory[cell] = held
        self.stack.append(held)

    def _recalled(self, cell: int) -> _Held:
        held = self.memory[cell] if 0 <= cell < len(self.memory) else None
        if held is None:
            raise PickleError(f"memory cell {cell} is empty")
        if isinstance(held.value, list | tuple | dict):
            raise PickleError(f"a {type(held.value).__name__} that is in two places, or in itself")
        return held


def _taken(held: _Held, *, data: bool) -> tuple[Any, int]:
    """Return the value that goes into a container, and its depth; ``data`` allows data only."""
    if isinstance(held.value, Array):
        if held.value.array is None:
            raise PickleError("an array without content")
        return held.value.array, 0
    if data and not held.plain:
        raise PickleError("a name or a dtype that is no data")
    return held.value, held.depth


def _depth(own: int, parts: Any) -> int:
    depth: int = max(own, 1 + max(parts, default=0))
    if depth > MAX_DEPTH:
        raise PickleError(f"nested more than {MAX_DEPTH} deep")
    return depth


def _number(value: Any) -> int | float | bool:
    if not isinstance(value, int | float):
        raise PickleError("no number where there should be one")
    if isinstance(value, int) and value.bit_length() > 8 * MAX_NUMBER:
        raise PickleError(f"a number of {value.bit_length()} bits")
    return value


def _key(value: Any) -> str | bytes:
    if type(value) in (str, bytes):
        key: str | bytes = value
        return key
    raise PickleError("a key that is no text")
