"""``datadefense flower init``: a copy of the example app, under the name of its folder."""

import keyword
import re
from importlib.util import find_spec
from pathlib import Path

from datadefense.core.round_files import FileError
from datadefense.core.settings import SettingsError

PACKAGED = Path(__file__).parents[1] / "flower" / "example"
"""Where the example is in an installed package."""
CLONED = Path(__file__).parents[3] / "examples" / "flower-app"
"""Where it is in a clone."""
PROJECT, PACKAGE = "defended-digits", "defended_digits"
"""What the example is called, as a project and as a package."""
KINDS = (".md", ".py", ".toml")


def write_app(folder: Path) -> str:
    """Write the app and return its name; a folder with something in it is refused."""
    if find_spec("flwr") is None:
        raise SettingsError("Flower is not installed: pip install 'datadefense[flower,demo]'")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileError(f"{folder} is not an empty folder: choose a new one")
    name = project_name(folder)
    for path in example_files():
        text = (example() / path).read_text(encoding="utf-8")
        target = folder / _renamed(str(path), name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_renamed(text, name), encoding="utf-8")
    return name


def example() -> Path:
    """Return the folder of the example, packaged or cloned."""
    for place in (PACKAGED, CLONED):
        if (place / "pyproject.toml").is_file():
            return place
    raise FileError(f"the example app is neither in {PACKAGED} nor in {CLONED}")


def example_files() -> list[Path]:
    """Return the files of the example, relative to its folder."""
    found = (path.relative_to(example()) for path in example().rglob("*") if path.suffix in KINDS)
    return sorted(path for path in found if not path.parts[0].startswith((".", "_")))


def project_name(folder: Path) -> str:
    """Return the folder's name if it can be that of a project and of a package, else the example's.

    It cannot be that of a package that is there already, which the app would hide; a mere folder of
    that name is none.

    >>> project_name(Path("somewhere/Our_Hospital"))
    'our-hospital'
    >>> project_name(Path("torch")), project_name(Path("2nd try")), project_name(Path("class"))
    ('defended-digits', 'defended-digits', 'defended-digits')
    """
    name = folder.absolute().name.lower().replace("_", "-")
    package = name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or keyword.iskeyword(package):
        return PROJECT
    there = find_spec(package)
    return name if there is None or there.origin is None else PROJECT


def _renamed(text: str, name: str) -> str:
    return text.replace(PROJECT, name).replace(PACKAGE, name.replace("-", "_"))
