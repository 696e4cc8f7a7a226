"""No code but a plug-in's own file knows its name: generic code works with whatever is brought."""

import re
from pathlib import Path

import pytest

from datadefense import attacks, defenses, postaggregators, preaggregators, schedules, tasks

SOURCE = Path(__file__).parents[1] / "src" / "datadefense"
CHOOSES = ("studies", "cli/demo.py")
"""Studies and the demo are choices of plug-ins: that is what they are for."""
PACKAGES = (attacks, defenses, postaggregators, preaggregators, schedules, tasks)
PROGRAM = "datadefense"
"""A defense, and also the package and the command."""
NAMES = sorted({name for package in PACKAGES for name in package.REGISTRY.ours} - {PROGRAM})


def generic_files():
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        if not place.startswith(CHOOSES):
            yield place, path.read_text(encoding="utf-8")


def own_file(name):
    """Where the class of a plug-in is, and where its package lists it."""
    for package in PACKAGES:
        if (cls := package.REGISTRY.ours.get(name)) is not None:
            yield cls.__module__.removeprefix("datadefense.").replace(".", "/") + ".py"
            yield package.REGISTRY.group.removeprefix("datadefense.") + "/__init__.py"
            yield package.REGISTRY.group.removeprefix("datadefense.") + "/registry.py"


def without_prose(text):
    """Code without docstrings, comments and examples in them."""
    text = re.sub(r'r?"""(?:.|\n)*?"""', '""', text)
    return re.sub(r"#.*", "", text)


@pytest.mark.parametrize("name", NAMES)
def test_nobody_else_knows_the_name(name):
    own = set(own_file(name))
    known = re.compile(rf"""["']{re.escape(name)}["']|startswith\(\(?["']{re.escape(name)}""")
    assert [
        place
        for place, text in generic_files()
        if place not in own and known.search(without_prose(text))
    ] == []
