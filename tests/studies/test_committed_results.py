"""What the repository shows is what its store holds, and says why where it differs."""

from pathlib import Path

import pytest

from datadefense.defenses import DEFENSES
from datadefense.studies.headline import headline
from datadefense.studies.overview import overview, overview_page
from datadefense.studies.store import read_store
from datadefense.studies.studies import STUDIES
from datadefense.studies.study import UNLIKE, cells, page

ROOT = Path(__file__).parents[2]
PAGES, REMARKS = ROOT / "docs" / "results", ROOT / "results" / "remarks"
RENDER = "run: datadefense reproduce all --render-only (and again with --scale paper)"


@pytest.fixture(scope="module")
def results():
    return read_store(ROOT / "results" / "runs.jsonl")


def test_the_readme_has_the_headline(results):
    assert headline(results) in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_overview_is_fresh(results):
    expected = overview_page(overview(results), "overview.png")
    assert (PAGES / "overview.md").read_text(encoding="utf-8") == expected, RENDER


@pytest.mark.parametrize("scale", ["cpu", "paper"])
@pytest.mark.parametrize("name", STUDIES)
def test_each_page_is_fresh_and_explains_itself(results, name, scale):
    study, stem = STUDIES[name], name if scale == "cpu" else f"{name}-{scale}"
    if not cells(study, scale, results):
        assert not (PAGES / f"{stem}.md").exists()
        return
    said = REMARKS / f"{stem}.md"
    remarks = said.read_text(encoding="utf-8") if said.exists() else ""
    picture = f"{stem}.png" if study.figure else ""
    expected = page(study, scale, results, picture, remarks)
    assert (PAGES / f"{stem}.md").read_text(encoding="utf-8") == expected, RENDER
    if f"{UNLIKE} |" in expected:
        assert remarks, f"{stem} differs from the paper and {said} does not say why"
    if name == "table1":
        rows = [line.split("|") for line in expected.splitlines() if f"{UNLIKE} |" in line]
        for defense in {row[2].strip() for row in rows}:
            assert defense in DEFENSES
            assert f"*{defense}*" in remarks, f"{said} does not say why {defense} differs"
    if picture:
        assert (PAGES / picture).exists()


def test_one_page_has_them_all_as_they_are():
    made = pytest.importorskip("datadefense.studies.results_page")
    text = made.results_page(PAGES, made.page_names(STUDIES))
    assert (PAGES / "index.html").read_text(encoding="utf-8") == text, RENDER
    for path in PAGES.glob("*.md"):
        assert f'<section id="{path.stem}">' in text


def test_remarks_are_on_studies():
    stems = {*STUDIES, *(f"{name}-paper" for name in STUDIES)}
    assert {path.stem for path in REMARKS.glob("*.md")} <= stems
