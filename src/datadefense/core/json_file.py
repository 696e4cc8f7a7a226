"""JSON in files of ours: strict when it is written, and checked when it is read back.

A file may have been damaged, or changed by hand. Whatever is wrong with it is one sentence that
names the file and the line; nothing of it escapes as another exception.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache
from inspect import signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from datadefense.core.foreign import is_short, message, plain_json, shown
from datadefense.core.round_files import FileError

T = TypeVar("T")
LONGEST_INTEGER = 20
"""Most characters of an integer: all of 64 bits have as many or fewer."""
WORDS: Mapping[Any, str] = {
    int: "an integer",
    float: "a number",
    str: "a text",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    NoneType: "null",
}


def to_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON that every reader takes: what is not finite is null."""
    return json.dumps(plain_json(value), indent=indent, allow_nan=False)


def from_json(text: bytes) -> Any:
    """Return what a text in UTF-8 holds; anything wrong with it is a ValueError of one line.

    NaN and infinities, which older files have, are None.
    """
    try:
        return json.loads(text.decode(), parse_constant=lambda _: None, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        raise ValueError(message(error)) from error


def read_json(path: Path, build: Callable[[Any], T]) -> T:
    """Return what ``build`` makes of the one value in a file; where it cannot, raise FileError."""
    content = path.read_bytes()
    try:
        return build(from_json(content))
    except Exception as error:
        raise FileError(f"{path} is damaged: {message(error)}") from error


def read_lines(
    path: Path, what: str, build: Callable[[Any], T], *, take_unended: bool = False
) -> tuple[list[T], bool]:
    """Return what ``build`` makes of each line, and whether a last line was cut off and left out.

    A last line without its end is cut off, unless ``take_unended`` and it is whole. Any other line
    that is not ``what`` it should be raises FileError.
    """
    *lines, rest = path.read_bytes().split(b"\n")
    made: list[T] = []
    for number, line in enumerate(lines, start=1):
        try:
            made.append(build(from_json(line)))
        except Exception as error:
            raise FileError(f"{path}, line {number} is not {what}: {message(error)}") from error
    if rest and take_unended:
        with suppress(Exception):
            return [*made, build(from_json(rest))], False
    return made, bool(rest)


def built(kind: type[T], values: Any) -> T:
    """Return a dataclass of these values, each of the type that the class declares.

    What is not so raises ValueError. Numbers may be whole; integers have at most 64 bits.
    """
    if type(values) is not dict:
        raise ValueError(f"must be an object, got {shown(values)}")
    hints, needed = _fields(kind)  # type: ignore[arg-type]
    for name, value in values.items():
        if name not in hints:
            raise ValueError(f"there is no {shown(name, 60)}")
        _check(name, value, hints[name])
    if missing := [name for name in needed if name not in values]:
        raise ValueError(f"it has no {', '.join(missing)}")
    return kind(**values)


@cache
def _fields(kind: type[Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the types of a class's fields, and which of them have no default."""
    needed = [
        name
        for name, parameter in signature(kind).parameters.items()
        if parameter.default is parameter.empty
    ]
    return get_type_hints(kind), needed


@cache
def _plain_kinds(hint: Any) -> frozenset[Any]:
    """Return the types that a value of a hint may have, if these are single values; else none."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if not set(parts) <= {int, float, str, bool, NoneType}:
        return frozenset()
    return frozenset({*parts, int} if float in parts else parts)


def _are_plain(values: Collection[Any], hint: Any) -> bool:
    """Say whether all values are single ones of a hint; quick, because there may be thousands."""
    kinds = set(map(type, values))
    return kinds <= _plain_kinds(hint) and (int not in kinds or all(map(_within_64_bits, values)))


def _within_64_bits(value: Any) -> bool:
    return type(value) is not int or is_short(value)


def _integer(text: str) -> int:
    if len(text) > LONGEST_INTEGER:
        raise ValueError(f"an integer of {len(text)} digits")
    return int(text)


def _check(name: str, value: Any, hint: Any) -> None:
    """Raise ValueError unless the value and all that is in it are of a type."""
    origin, parts = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, UnionType):
        if not any(_is(value, part) for part in parts):
            raise ValueError(f"{name} must be {_words(parts)}, got {shown(value)}")
        whole = next(part for part in parts if _is(value, part))
        _check(name, value, whole)
    elif not _is(value, hint):
        raise ValueError(f"{name} must be {_words([hint])}, got {shown(value)}")
    elif parts and type(value) in (list, dict):
        items, hint = (value, parts[0]) if type(value) is list else (value.values(), parts[1])
        if hint is not Any and not _are_plain(items, hint):
            for item in items:
                _check(f"what is in {name}", item, hint)


def _is(value: Any, hint: Any) -> bool:
    """Say whether a value itself is of a type, whatever is in it."""
    kind = _plain_kind(hint)
    if kind is Any:
        return True
    if kind is float:
        return type(value) is float or (type(value) is int and is_short(value))
    return type(value) is kind and (kind is not int or is_short(value))


def _plain_kind(hint: Any) -> Any:
    """Return what JSON has for a type."""
    kind = get_origin(hint) or hint
    return {Sequence: list, Mapping: dict}.get(kind, kind)


def _words(hints: Sequence[Any]) -> str:
    return " or ".join(WORDS.get(_plain_kind(hint), str(hint)) for hint in hints)
