import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("flwr")
from flwr.cli.config_utils import load_and_validate

from datadefense.cli import flower_init
from datadefense.cli.app import main

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower-app"


def init(monkeypatch, folder):
    monkeypatch.setattr("sys.argv", ["datadefense", "flower", "init", str(folder)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_an_app_under_the_folders_name(monkeypatch, tmp_path, capsys):
    folder = tmp_path / "my-app"
    assert init(monkeypatch, folder) == 0
    assert f"wrote the Flower app my-app to {folder}" in capsys.readouterr().out
    written = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    modules = ("__init__", "client_app", "hostile", "server_app", "task")
    assert written == {
        "README.md",
        "certificates.py",
        "pyproject.toml",
        *(f"my_app/{module}.py" for module in modules),
    }
    for path in folder.rglob("*"):
        if path.is_file():
            assert not re.search("defended.digits", path.read_text()), path
        if path.suffix == ".py":
            ast.parse(path.read_text())
    monkeypatch.setattr("sys.path", [*sys.path])  # to which Flower adds the app
    config, warnings = load_and_validate(folder / "pyproject.toml")
    assert not warnings
    assert config["project"]["name"] == "my-app"
    assert config["project"]["dependencies"] == []
    assert config["tool"]["flwr"]["app"]["components"]["clientapp"] == "my_app.client_app:app"


def test_a_name_that_is_none_keeps_the_examples(monkeypatch, tmp_path):
    folder = tmp_path / "2nd try"
    assert init(monkeypatch, folder) == 0
    for path in (one for one in EXAMPLE.rglob("*") if one.suffix in (".py", ".toml", ".md")):
        assert (folder / path.relative_to(EXAMPLE)).read_text() == path.read_text()


def test_a_folder_with_something_in_it_is_refused(monkeypatch, tmp_path, capsys):
    (tmp_path / "mine").write_text("precious")
    assert init(monkeypatch, tmp_path) == 2
    assert init(monkeypatch, tmp_path / "mine") == 2
    assert "is not an empty folder: choose a new one" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_an_empty_folder_is_fine(monkeypatch, tmp_path):
    assert init(monkeypatch, tmp_path) == 0


def test_without_flower_one_line_says_how_to_get_it(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(flower_init, "find_spec", lambda _: None)
    assert init(monkeypatch, tmp_path / "app") == 2
    assert capsys.readouterr().err == (
        "error: Flower is not installed: pip install 'datadefense[flower,demo]'\n"
    )
    assert not (tmp_path / "app").exists()


def test_the_wheel_brings_the_example():
    build = tomllib.loads((EXAMPLE.parents[1] / "pyproject.toml").read_text())
    targets = build["tool"]["hatch"]["build"]["targets"]
    (place,) = targets["wheel"]["force-include"].items()
    assert place == ("examples/flower-app", "datadefense/flower/example")
    assert str(flower_init.PACKAGED).endswith(place[1])
    assert "/examples" in targets["sdist"]["include"]


def test_a_package_without_its_example_says_so(monkeypatch, tmp_path):
    for place in ("PACKAGED", "CLONED"):
        monkeypatch.setattr(flower_init, place, tmp_path / "nowhere")
    with pytest.raises(ValueError, match="neither in"):
        flower_init.example()
