"""A state as a tree of plain values, with its tensors aside; and the way back.

A state is a tree of frozen dataclasses, tuples, dicts, tensors, numbers, texts and None. Keys of
dicts are integers or texts. On the way back every part is held against a state of the same kind,
``like``, and against the types that its class declares: a file may change values, never kinds.
"""

import dataclasses
import math
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from torch import Tensor

from datadefense.core.errors import DataDefenseError

PLAIN = (type(None), bool, int, float, str)
"""Types of values that a tree holds as they are."""


class TreeError(DataDefenseError, ValueError):
    """A state that a tree cannot hold, or a tree that does not hold such a state."""


def encode(value: object, where: str, tensors: dict[str, Tensor]) -> Any:
    """Return the tree of a state, and put its tensors into ``tensors``, by names in the tree."""
    if isinstance(value, Tensor):
        name = f"{len(tensors)}:{where}"
        tensors[name] = value
        return {"tensor": name}
    if _is_record(value):
        names = [field.name for field in dataclasses.fields(value)]  # type: ignore[arg-type]
        return {"fields": {n: encode(getattr(value, n), f"{where}.{n}", tensors) for n in names}}
    if isinstance(value, tuple):
        kind = "named" if hasattr(value, "_fields") else "items"
        return {kind: [encode(v, f"{where}.{i}", tensors) for i, v in enumerate(value)]}
    if isinstance(value, dict):
        if odd := [key for key in value if type(key) not in (int, str)]:
            raise TreeError(f"{where} has the key {odd[0]!r}; keys must be integers or texts")
        return {"pairs": [[k, encode(v, f"{where}.{k}", tensors)] for k, v in value.items()]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(float(value))}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise TreeError(f"{where} is a {type(value).__name__}, which a state cannot hold")


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where a part of a state is, what was there in ``like``, and what its class declares."""

    where: str
    like: Any
    hint: Any = None

    def part(self, name: object, like: Any, hint: Any) -> "Place":
        """Return the place of a part of what is here."""
        return Place(f"{self.where}.{name}", like, hint)

    def refuse(self) -> NoReturn:
        """Raise the error of a tree that holds something else here."""
        raise TreeError(f"{self.where} does not hold a {type(self.like).__name__}")

    def check_open(self) -> None:
        """Refuse what is no plain value, unless ``like`` is None here and nothing is declared."""
        if self.like is not None or _plain_types(self.hint) is not None:
            self.refuse()

    def check(self, kind: type) -> None:
        """Refuse a kind of value that neither ``like`` has here nor its class declares."""
        if kind is type(self.like) or (kind is int and type(self.like) is float):
            return
        declared = _plain_types(self.hint)
        if kind not in (PLAIN if declared is None else declared):
            self.refuse()
        if declared is None and self.like is not None:
            self.refuse()


def decode(tree: Any, place: Place, tensors: Mapping[str, Tensor]) -> Any:
    """Return the state that a tree holds."""
    ((kind, content),) = tree.items()
    if kind in ("value", "float"):
        value = float(content) if kind == "float" else content
        place.check(type(value))
        return value
    if kind == "tensor":
        return _tensor(tensors[content], place)
    if kind in ("items", "named"):
        return _tuple(kind, content, place, tensors)
    if kind == "pairs":
        return _dict(content, place, tensors)
    if kind == "fields":
        return _record(content, place, tensors)
    raise TreeError(f"{place.where} is of an unknown kind: {kind!r:.40}")


def _tensor(tensor: Tensor, place: Place) -> Tensor:
    like = place.like
    if isinstance(like, Tensor):
        if (tensor.dtype, tensor.shape) != (like.dtype, like.shape):
            raise TreeError(
                f"{place.where} is {tensor.dtype} {tuple(tensor.shape)}, "
                f"expected {like.dtype} {tuple(like.shape)}"
            )
    else:
        place.check_open()
    return tensor


def _tuple(kind: str, content: list[Any], place: Place, tensors: Mapping[str, Tensor]) -> Any:
    like = place.like
    named = hasattr(like, "_fields")
    if not isinstance(like, tuple):
        place.check_open()
    if named is not (kind == "named"):
        place.refuse()
    same = isinstance(like, tuple) and len(like) == len(content)
    if named and not same:
        place.refuse()
    likes = like if same else (None,) * len(content)
    hints = _field_hints(type(like)).values() if named else _item_hints(place.hint, len(content))
    items = [
        decode(item, place.part(i, like, hint), tensors)
        for i, (item, like, hint) in enumerate(zip(content, likes, hints, strict=True))
    ]
    return type(like)(*items) if named else tuple(items)


def _dict(content: list[Any], place: Place, tensors: Mapping[str, Tensor]) -> dict[Any, Any]:
    if not isinstance(place.like, dict):
        place.check_open()
    known = place.like or {}
    hints = [get_args(hint) for hint in _members(place.hint) if get_origin(hint) is dict]
    keys, hint = hints[0] if hints else (None, None)
    declared = _plain_types(keys) or (int, str)
    found: dict[Any, Any] = {}
    for key, item in content:
        if type(key) not in (int, str) or type(key) not in declared or key in found:
            raise TreeError(f"{place.where} has a key that it cannot have: {key!r:.40}")
        found[key] = decode(item, place.part(key, known.get(key), hint), tensors)
    return found


def _record(content: dict[str, Any], place: Place, tensors: Mapping[str, Tensor]) -> Any:
    like = place.like
    fields = dataclasses.fields(like) if _is_record(like) else ()
    names = [field.name for field in fields if field.name in content or not _has_default(field)]
    if not fields or set(names) != set(content):
        place.refuse()
    hints = _field_hints(type(like))
    return type(like)(
        **{
            name: decode(
                content[name], place.part(name, getattr(like, name), hints.get(name)), tensors
            )
            for name in names
        }
    )


def _has_default(field: dataclasses.Field[Any]) -> bool:
    """Say whether a file may do without it: one of a version that did not know it yet."""
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


def _is_record(value: object) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _field_hints(cls: type) -> dict[str, Any]:
    """Return the declared types of a class's fields, in order; None where they cannot be told."""
    names = getattr(cls, "_fields", None) or [field.name for field in dataclasses.fields(cls)]
    try:
        hints = get_type_hints(cls)
    except Exception:  # a name in a hint that only its own module knows
        hints = {}
    return {name: hints.get(name) for name in names}


def _members(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the one type that it is."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _plain_types(hint: Any) -> set[type] | None:
    """Return the types of plain values that a hint allows; None if it allows anything else too."""
    allowed: set[type] = set()
    for member in _members(hint):
        if get_origin(member) is Literal:
            allowed |= {type(value) for value in get_args(member)}
        elif member in PLAIN and member is not None:
            allowed |= {int, float} if member is float else {member}
        else:
            return None
    return allowed


def _item_hints(hint: Any, length: int) -> Iterator[Any]:
    """Return what a hint says of each item of a tuple."""
    for member in _members(hint):
        args = get_args(member) if get_origin(member) is tuple else ()
        if len(args) == 2 and args[1] is Ellipsis:
            return iter([args[0]] * length)
        if len(args) == length:
            return iter(args)
    return iter([None] * length)
