from pathlib import Path

from tests.dependencies import for_users, installed, licence, surprises, unpinned

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"


def test_every_installed_package_is_pinned():
    assert unpinned(CONSTRAINTS.read_text()) == []


def test_a_package_without_a_pin_or_at_another_version_is_named():
    lines = CONSTRAINTS.read_text().splitlines()
    without = "\n".join(line for line in lines if not line.startswith("rich=="))
    version = installed()["rich"].version
    assert unpinned(without) == [f"rich=={version}"]
    assert unpinned(without + "\nrich==0.1") == [f"rich=={version}"]


def test_what_users_get_has_licences_that_we_know():
    names = for_users()
    assert {"torch", "numpy", "safetensors", "typer", "rich", "jaxtyping"} <= set(names)
    assert not {"pytest", "mypy", "bandit"} & set(names)
    assert surprises({name: licence(name) for name in names}) == []


def test_surprises_are_named():
    odd = {"a": "GPL-3.0-or-later", "b": "", "c": "LGPLv3", "d": "Secret", "e": "AGPL-3.0 OR MIT"}
    assert [text[0] for text in surprises({**odd, "f": "MIT", "g": "BSD-3-Clause"})] == list(
        "abcde"
    )
