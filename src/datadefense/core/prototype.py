"""A prototype: an instance as a class of its own, whose defaults are the instance's values.

Plug-ins are named by class, and a name with settings must make the same plug-in again. An instance
that holds data can only be named by where it is found. The class that is made here closes the gap:
it is called what the instance is called, and holds what the instance holds.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar, get_type_hints

from datadefense.core.settings import SettingsError

T = TypeVar("T")
USUAL = "usual"
"""Where a field's metadata has the default of the instance's own class.

What differs from that is what a run is known by: the instance may be another tomorrow.
"""


def class_like(
    instance: T, module: str, name: str, constants: Mapping[str, object] | None = None
) -> type[T]:
    """Return a class that makes instances like this one, known as ``module:name``.

    Fields that were declared by `setting` stay settings, with the instance's values as defaults.
    The others are held: every instance of the class has the very same objects.

    Args:
        instance: of a frozen dataclass.
        module: where the instance is found.
        name: what it is called there.
        constants: attributes of the class beside those that it inherits.
    """
    cls: type[Any] = type(instance)
    if not hasattr(cls, "__dataclass_fields__"):
        raise SettingsError(f"{module}:{name} must be of a dataclass, got a {cls.__name__}")
    hints = get_type_hints(cls)
    fields = [
        (field.name, hints[field.name], _default(field, getattr(instance, field.name)))
        for field in dataclasses.fields(cls)
        if field.init
    ]
    namespace = {"__doc__": cls.__doc__, **(constants or {})}
    made: Any = dataclasses.make_dataclass(
        name, fields, bases=(cls,), namespace=namespace, frozen=True, slots=True
    )
    made.__module__, made.__qualname__ = module, name
    return made  # type: ignore[no-any-return]


def _default(field: "dataclasses.Field[Any]", value: Any) -> Any:
    if "help" not in field.metadata:
        return dataclasses.field(
            init=False, default_factory=lambda: value, repr=False, compare=False
        )
    metadata = {**field.metadata, USUAL: field.default}
    return dataclasses.field(default=value, metadata=metadata)
