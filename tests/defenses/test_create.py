"""A defense of one's own, named by its module and class."""

import sys

import pytest

from datadefense.core.settings import SettingsError
from datadefense.defenses import create
from datadefense.testing import check_defense

SOURCE = '''
from dataclasses import dataclass
from typing import ClassVar

from datadefense.core.defense import Combined, Promise, Rule
from datadefense.core.settings import check_float, setting


@dataclass(frozen=True, slots=True)
class Careful(Rule):
    """The mean, shortened."""

    factor: float = setting(0.5, "share of the mean that is taken")
    name: ClassVar[str] = "careful"
    promises: ClassVar[Promise] = Promise(0)

    def __post_init__(self) -> None:
        check_float("factor", self.factor, minimum=0, maximum=1)

    def combine(self, round):
        return Combined(self.factor * round.updates.mean(0))


def not_a_class():
    """Return nothing."""


class Stranger:
    """A class of something else."""
'''


@pytest.fixture(autouse=True)
def mine(tmp_path, monkeypatch):
    """A module on the path, gone afterwards."""
    (tmp_path / "my_rules.py").write_text(SOURCE)
    (tmp_path / "my_broken_rules.py").write_text("import a_module_that_nobody_has")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("my_rules", None)


def test_a_class_of_a_module_is_made_with_its_settings():
    made = create("my_rules:Careful", {"factor": "0.25"})
    assert (type(made).__name__, made.factor) == ("Careful", 0.25)
    assert create("my_rules:Careful").factor == 0.5


def test_what_is_made_is_a_defense():
    check_defense(create("my_rules:Careful"))


def test_ours_can_be_named_so_too():
    assert create("datadefense.defenses.krum:Krum", {"num_malicious": 2}) == create(
        "krum", {"num_malicious": 2}
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:Careful", "cannot import .*: No module named 'no_such_module'"),
        ("my_broken_rules:Careful", "cannot import .*: No module named 'a_module_that_nobody_has'"),
        ("my_rules:Carefull", "cannot import .* has no attribute 'Carefull'"),
        ("my_rules:", "cannot import the defense 'my_rules:'"),
        (":Careful", "cannot import the defense ':Careful'"),
        (
            "my_rules:not_a_class",
            "'my_rules:not_a_class' must be a class of defenses, got <function",
        ),
        ("my_rules:Stranger", "'my_rules:Stranger' must be a class of defenses, got <class"),
        ("datadefense.core.defense:Rule", "abstract"),
    ],
)
def test_what_cannot_be_made(name, message):
    with pytest.raises(SettingsError, match=message):
        create(name)


def test_its_settings_are_checked():
    with pytest.raises(SettingsError, match="factor must be <= 1, got 2"):
        create("my_rules:Careful", {"factor": "2"})
    with pytest.raises(SettingsError, match="did you mean 'factor'?"):
        create("my_rules:Careful", {"facter": "1"})
