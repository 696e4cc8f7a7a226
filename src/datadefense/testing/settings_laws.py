"""The law on settings that every plug-in obeys: a run can store them and read them back."""

import dataclasses
from typing import Any

from datadefense.core.settings import SettingsError, build, setting_names
from datadefense.testing.broken import BrokenLawError, require

PLAIN = (bool, int, float, str, type(None))


def require_name(plugin: object) -> None:
    """Raise unless a plug-in has a name."""
    name = getattr(plugin, "name", None)
    require(isinstance(name, str) and name != "", f"name must be a text, got {name!r}")


def require_plain_settings(plugin: object) -> None:
    """Raise unless a plug-in is a frozen dataclass whose settings can be stored and read back.

    Each setting is a number, a text or None, and has a default. Made again from the texts of its
    settings, the plug-in has the same settings.
    """
    cls: Any = type(plugin)
    frozen = "__dataclass_params__" in vars(cls) and cls.__dataclass_params__.frozen
    require(frozen, f"{cls.__name__} is not a frozen dataclass")
    for field in dataclasses.fields(cls):
        value = getattr(plugin, field.name)
        require(isinstance(value, PLAIN), f"the setting {field.name} is a {type(value).__name__}")
        default = field.default is not dataclasses.MISSING
        require(default, f"the setting {field.name} has no default")
    values = {name: getattr(plugin, name) for name in setting_names(cls)}
    try:
        again = build(cls, {name: str(value) for name, value in values.items()})
    except SettingsError as error:
        raise BrokenLawError(f"its settings cannot be read back: {error}") from error
    for name, value in values.items():
        read = getattr(again, name)
        require(read == value, f"the setting {name} = {value!r} is read back as {read!r}")
