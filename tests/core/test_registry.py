"""A registry of any kind of plug-in: names that lead to classes, and classes to their names."""

from dataclasses import dataclass

import pytest
from tests.plugin_registry import install as install_in

from datadefense.core.registry import Registry, about
from datadefense.core.settings import SettingsError, setting


class Cake:
    """What all plug-ins of this test are."""


@dataclass(frozen=True)
class Plain(Cake):
    """A cake with sugar.

    And more words.
    """

    sugar: int = setting(3, "spoons of sugar")


@dataclass(frozen=True)
class Layered(Cake):
    layers: int = 2


@dataclass(frozen=True)
class Installed(Cake):
    pass


class Kitchen:
    """A class within a class has a name with a dot."""

    @dataclass(frozen=True)
    class Secret(Cake):
        pass


GROUP = "bakery.cakes"
CAKES = Registry("cake", Cake, GROUP, {"plain": Plain, "layered": Layered})


@pytest.fixture
def installed(monkeypatch):
    """Let packages name what they bring: pairs of a name and module:Class."""

    def install(*pairs):
        install_in(monkeypatch, GROUP, *pairs)

    return install


@pytest.mark.parametrize("cake", [Plain(), Layered(), Installed(), Kitchen.Secret()])
def test_the_name_of_a_class_leads_back_to_it(cake):
    assert CAKES.find(CAKES.name_of(cake)) is type(cake)


def test_names_of_ours_and_of_others():
    assert CAKES.name_of(Plain(5)) == "plain"
    assert CAKES.name_of(Installed()) == f"{__name__}:Installed"


def test_an_installed_class_goes_by_the_name_that_its_package_gives_it(installed):
    installed(("dry", f"{__name__}:Installed"))
    assert CAKES.name_of(Installed()) == "dry"
    assert CAKES.find("dry") is CAKES.find(f"{__name__}:Installed") is Installed
    assert list(CAKES) == ["plain", "layered", "dry"]


def test_a_class_that_its_package_names_elsewhere_goes_by_that_name(installed):
    """As where a package's first module has what another of its modules defines."""
    installed(("dry", "tests.core.test_registry:CAKES.base"), ("wet", f"{__name__}:Kitchen.Secret"))
    assert CAKES.name_of(Kitchen.Secret()) == "wet"
    assert CAKES.name_of(Cake()) == "dry"


def test_a_name_that_is_ours_stays_ours_in_both_directions(installed, datadefense_log):
    installed(("plain", f"{__name__}:Installed"))
    assert CAKES.find("plain") is Plain
    assert CAKES.name_of(Installed()) == f"{__name__}:Installed"
    assert "the name 'plain' is taken; left out" in datadefense_log.text


def test_of_two_packages_with_one_name_the_name_leads_back_all_the_same(installed):
    installed(("dry", f"{__name__}:Installed"), ("dry", f"{__name__}:Kitchen.Secret"))
    for cake in (Installed(), Kitchen.Secret()):
        assert CAKES.find(CAKES.name_of(cake)) is type(cake)


@pytest.mark.parametrize(
    "value", ["no.such.module:Thing", f"{__name__}:Thing", f"{__name__}:GROUP"]
)
def test_what_cannot_be_loaded_is_left_out_with_a_warning(installed, datadefense_log, value):
    installed(("bad", value), ("good", f"{__name__}:Installed"))
    assert list(CAKES.available()) == ["plain", "layered", "good"]
    assert f"{value}: cannot be loaded" in datadefense_log.text


def test_an_unknown_name_has_a_suggestion(installed):
    installed(("dry", f"{__name__}:Installed"))
    with pytest.raises(SettingsError, match="no cake is called 'plane', did you mean 'plain'?"):
        CAKES.find("plane")
    with pytest.raises(SettingsError, match="no cake is called 'zzz'; there are: dry, layered, pl"):
        CAKES.find("zzz")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:Cake", "cannot import the cake .*: No module named 'no_such_module'"),
        (f"{__name__}:Kake", "cannot import the cake .* has no attribute 'Kake'"),
        (f"{__name__}:GROUP", "must be a class of cakes, got 'bakery.cakes'"),
        (f"{__name__}:Kitchen", "must be a class of cakes"),
        (f"{__name__}:", "cannot import the cake"),
        (":Plain", "cannot import the cake"),
    ],
)
def test_a_class_of_ones_own_that_is_none(name, message):
    with pytest.raises(SettingsError, match=message):
        CAKES.find(name)


def test_settings_are_given_as_texts_or_values():
    assert CAKES.create("plain") == Plain(3)
    assert CAKES.create("plain", {"sugar": "5"}) == CAKES.create("plain", {"sugar": 5}) == Plain(5)


def test_the_help_is_the_first_line_of_the_docstring():
    assert about(Plain) == "A cake with sugar."
