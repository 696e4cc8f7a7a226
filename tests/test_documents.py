"""The code in README and CONTRIBUTING runs, and the files that documents link to exist."""

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
DOCUMENTS = [*TOP, *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_the_python_in_it_runs(name, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), name, "exec"), {"__name__": name})  # noqa: S102
    if name == "README.md":
        assert "values are not finite" in capsys.readouterr().out


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document):
    links = re.findall(r"\]\(([^)#]+)\)", document.read_text())
    missing = [
        link for link in links if "://" not in link and not (document.parent / link).exists()
    ]
    assert not missing


PLUGIN_PAGES = [ROOT / "docs" / "plugins" / f"{name}.md" for name in ("task", "attack", "schedule")]


@pytest.mark.parametrize("page", PLUGIN_PAGES, ids=lambda path: path.name)
def test_the_plugin_of_a_page_runs(page, tmp_path, monkeypatch):
    """Each page's code is a module; it runs, checks itself, and its example has <= 30 lines."""
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    name = f"page_{page.stem}"
    (tmp_path / f"{name}.py").write_text("\n".join(blocks))
    for block in blocks:
        code = [line for line in block.splitlines() if line and "import" not in line.split()[:3]]
        assert len(code) <= 30, block
    module = importlib.import_module(name)
    assert module
    sys.modules.pop(name)
