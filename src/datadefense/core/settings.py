"""Settings: documented fields of a frozen dataclass, checked, listed and set by name.

A class's fields are its whole configuration: the same names serve the constructor, the command
line (``--set num_malicious=2``), the record of a run and the table of ``datadefense list``.
"""

import dataclasses
import difflib
import math
import types
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from datadefense.core.errors import DataDefenseError

T = TypeVar("T")


class SettingsError(DataDefenseError, ValueError):
    """A setting that does not exist, cannot be read or is out of range."""


def setting(default: T, help: str) -> T:
    """Declare a dataclass field with a default and one line that says what it is."""
    field: T = dataclasses.field(default=default, metadata={"help": help})
    return field


def check_int(name: str, value: object, minimum: int) -> None:
    """Check that ``value`` is an integer >= ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise SettingsError(f"{name} must be an integer, got {value!r}")
    if value < minimum:
        raise SettingsError(f"{name} must be >= {minimum}, got {value}")


def check_float(
    name: str,
    value: object,
    *,
    above: float = -math.inf,
    minimum: float = -math.inf,
    maximum: float = math.inf,
    below: float = math.inf,
) -> None:
    """Check that ``value`` is a finite number within its bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingsError(f"{name} must be a finite number, got {value!r}")
    for symbol, bound, holds in (
        (">", above, value > above),
        (">=", minimum, value >= minimum),
        ("<=", maximum, value <= maximum),
        ("<", below, value < below),
    ):
        if not holds:
            raise SettingsError(f"{name} must be {symbol} {bound:g}, got {value:g}")


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Check that ``value`` is one of ``choices``."""
    if value not in (options := tuple(choices)):
        raise SettingsError(f"{name} must be one of {', '.join(options)}, got {value!r}")


def build(cls: type[T], values: Mapping[str, object], called: str | None = None) -> T:
    """Make an instance of a settings class from values or their texts; an unknown name is an error.

    ``called`` is what a user calls the class, for messages.

    >>> from datadefense.defenses.krum import Krum
    >>> build(Krum, {"num_malicious": "2"})
    Krum(num_malicious=2)
    """
    try:
        return cls(**parse(cls, values, called))
    except TypeError as error:
        raise SettingsError(f"{called or cls.__name__}: {error}") from error


def parse(
    cls: type[Any], values: Mapping[str, object], called: str | None = None
) -> dict[str, Any]:
    """Read texts as the types of a settings class's fields; an unknown name is an error."""
    if not values:
        return {}
    called = called or cls.__name__
    if not dataclasses.is_dataclass(cls):
        raise SettingsError(f"{called} is not a dataclass: its settings cannot be set by name")
    hints = get_type_hints(cls)
    names = setting_names(cls)
    for name in values:
        if name not in names:
            raise SettingsError(f"{called} has no setting {name!r}{suggest(name, names)}")
    return {name: _parse(name, text, hints[name]) for name, text in values.items()}


def setting_names(cls: type[Any]) -> list[str]:
    """Return the names of a class's settings; one that is no dataclass has none."""
    if not dataclasses.is_dataclass(cls):
        return []
    return [field.name for field in dataclasses.fields(cls) if field.init]


def read_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """Split ``key=value`` texts; a text without "=" or a name given twice is an error."""
    values: dict[str, str] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator or not name.strip():
            raise SettingsError(f"expected key=value, got {pair!r}")
        if name.strip() in values:
            raise SettingsError(f"{name.strip()!r} is set twice")
        values[name.strip()] = text.strip()
    return values


def suggest(name: str, names: Iterable[str]) -> str:
    """Return ", did you mean 'x'?" or what there is to choose from."""
    options = sorted(names)
    if close := difflib.get_close_matches(name, options, n=1):
        return f", did you mean {close[0]!r}?"
    return f"; there are: {', '.join(options)}" if options else "; it has no settings"


def _parse(name: str, text: object, hint: Any) -> Any:
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    if not isinstance(text, str):
        if any(_is_of(text, option) for option in options):
            return text
        raise SettingsError(f"{name} must be {_describe(options)}, got {text!r}")
    if type(None) in options and text.lower() == "none":
        return None
    for option in options:
        if get_origin(option) is Literal and text in get_args(option):
            return text
        if option is bool and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if option in (int, float):
            try:
                return option(text)
            except ValueError:
                continue
        if option is str:
            return text
    raise SettingsError(f"{name} must be {_describe(options)}, got {text!r}")


def _is_of(value: object, option: Any) -> bool:
    """Say whether a value is of a type; a type that no text could be read as is not looked at."""
    if option is type(None):
        return value is None
    if get_origin(option) is Literal:
        return value in get_args(option)
    if option is int:
        return type(value) is int
    if option is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return option not in (bool, str) or isinstance(value, option)


def _describe(options: tuple[Any, ...]) -> str:
    words: list[str] = []
    for option in options:
        if get_origin(option) is Literal:
            words += map(str, get_args(option))
        else:
            plain = {int: "an integer", float: "a number", bool: "true or false", str: "text"}
            words.append("none" if option is type(None) else plain.get(option, str(option)))
    return " or ".join(words)
