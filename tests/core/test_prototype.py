"""An instance as a class: it keeps its name, its values, and what it holds."""

from dataclasses import dataclass, field, fields, replace

import pytest
import torch

from datadefense.core.prototype import USUAL, class_like
from datadefense.core.settings import SettingsError, build, setting


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that holds a tensor."""

    held: torch.Tensor
    size: int = setting(3, "how large")
    filled: int = field(init=False, default=0)

    def __post_init__(self):
        object.__setattr__(self, "filled", 2 * self.size)


def test_instances_are_like_the_prototype():
    tensor = torch.ones(2)
    cls = class_like(Thing(tensor, size=5), "my_module", "thing", {"extra": 1})
    assert (cls.__module__, cls.__qualname__, cls.extra) == ("my_module", "thing", 1)
    assert issubclass(cls, Thing)
    made, changed = cls(), build(cls, {"size": "7"})
    assert made.held is changed.held is tensor
    assert (made.size, changed.size, changed.filled) == (5, 7, 14)
    assert replace(made, size=9).held is tensor
    assert cls() == made != changed


def test_only_settings_can_be_set_and_their_usual_defaults_are_known():
    cls = class_like(Thing(torch.ones(2), size=5), "my_module", "thing")
    with pytest.raises(SettingsError, match="has no setting 'held'"):
        build(cls, {"held": "1"})
    (size,) = (one for one in fields(cls) if one.init)
    assert (size.name, size.default, size.metadata[USUAL]) == ("size", 5, 3)


def test_it_must_be_a_dataclass():
    with pytest.raises(SettingsError, match="my_module:thing must be of a dataclass, got a int"):
        class_like(3, "my_module", "thing")
