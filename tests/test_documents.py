"""The code in documents runs, and the files that documents link to exist."""

import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from datadefense.attacks import ATTACKS
from datadefense.core.settings import setting_names
from datadefense.runs.config import ORDER, PLAIN
from datadefense.runs.config import PLUGINS as REGISTRIES

ROOT = Path(__file__).parent.parent
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
DOCUMENTS = [*TOP, *sorted((ROOT / "docs").rglob("*.md"))]


PLUGINS = [f"docs/plugins/{path.name}" for path in sorted((ROOT / "docs/plugins").glob("*.md"))]


@pytest.mark.parametrize("name", ["README.md", "docs/defenses.md", *PLUGINS])
def test_the_python_in_it_runs(name, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path))
    monkeypatch.setitem(sys.modules, "page", page := ModuleType("page"))
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), name, "exec"), page.__dict__)  # noqa: S102
    if name == "README.md":
        assert "values are not finite" in capsys.readouterr().out
    if name == "docs/defenses.md":
        said = capsys.readouterr().out.strip()
        assert said == "['clip.norm', 'clip.scale', 'nnm.rows', 'mixed.score']"


@pytest.mark.parametrize("name", ["docs/defenses.md", *PLUGINS])
def test_an_example_is_short(name):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)
    assert all(len(block.splitlines()) <= 30 for block in blocks)


def test_the_figures_of_own_tasks_are_those_of_the_file():
    rows = json.loads((ROOT / "results" / "benchmarks" / "own-tasks.json").read_text())
    page = (ROOT / "docs" / "plugins" / "task.md").read_text()
    cases = {(row["task"], row["defense"], str(row["changes"])) for row in rows}
    assert len(cases) == 7
    for case in cases:
        found = [row for row in rows if (row["task"], row["defense"], str(row["changes"])) == case]
        rates = [row["asr_percent"] for row in found]
        accuracy = sum(row["ma_percent"] for row in found) / len(found)
        mean = sum(rates) / len(rates)
        assert f"{mean:.1f} ({min(rates):.1f} to {max(rates):.1f}) %" in page
        assert "epochs" in case[2] or f"{accuracy:.1f}" in page


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document):
    links = re.findall(r"\]\(([^)#]+)\)", document.read_text())
    missing = [
        link for link in links if "://" not in link and not (document.parent / link).exists()
    ]
    assert not missing


def rows_of_paper_to_code():
    """Return the names of code and the first file beside them, of each row that has both."""
    folder, rows = ROOT / "docs", []
    for line in (folder / "paper-to-code.md").read_text().splitlines():
        cells = line.split(" | ")
        if len(cells) == 3 and (names := re.findall(r"`([\w.]+)`", cells[1])):
            file = re.findall(r"\]\(([^)]+)\)", cells[2])[0]
            rows.append(pytest.param(folder / file, names, id=",".join(names)))
    return rows


@pytest.mark.parametrize(("path", "names"), rows_of_paper_to_code())
def test_what_the_paper_has_is_where_the_table_says(path, names):
    text = path.read_text()
    for name in names:
        for part in name.split("."):
            assert re.search(rf"^ *(def|class) {part}\b|^ +{part}:", text, re.MULTILINE), name


def test_the_table_has_every_equation():
    text = (ROOT / "docs" / "paper-to-code.md").read_text()
    assert re.findall(r"\*\*Eq\. (\d+)\*\*", text) == [str(number) for number in range(1, 12)]


def test_every_attack_is_in_the_table_with_its_threat_model():
    text = (ROOT / "docs" / "simulation.md").read_text()
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    shown = {row[0].strip("| `"): row[2:4] for row in rows if len(row) == 5}
    assert shown == {
        name: ["yes" if said else "no" for said in (cls.threat.trains_longer, cls.threat.scales)]
        for name, cls in ATTACKS.items()
    }


def test_the_settings_that_documents_name_are_settings():
    """`part.setting` in prose and after ``--set``, of our own plug-ins."""
    known = {
        f"{part}.{name}"
        for part in ORDER
        for cls in ([PLAIN[part]] if part in PLAIN else REGISTRIES[part].ours.values())
        for name in setting_names(cls)
    }
    plain = "|".join(PLAIN)
    for document in (ROOT / "docs" / "simulation.md", ROOT / "docs" / "defense-set.md"):
        found = re.findall(rf"\b((?:{plain}|task|attack|schedule)\.[a-z_]+)=", document.read_text())
        assert set(found) <= known
    assert len(re.findall(r"\bserver\.[a-z_]+", (ROOT / "docs" / "simulation.md").read_text())) > 2
