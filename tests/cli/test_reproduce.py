"""``datadefense reproduce`` and ``datadefense list studies``."""

import json

import pytest
from tests.runs.quick import quick
from tests.runs.summaries import SUMMARY
from tests.studies.grid_results import FIGURES, made_up

from datadefense.cli import reproduce
from datadefense.studies.store import Result, append, read_store
from datadefense.studies.studies import STUDIES
from datadefense.studies.study import Point, Study

pytest.importorskip("matplotlib")
POINTS = [
    Point(("pgd", "fedavg"), quick(attack="pgd")),
    Point(("pgd", "median"), quick(attack="pgd", defense="median")),
]
TOY = Study("toy", "does it hold?", ("attack", "defense"), lambda scale: POINTS)


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(reproduce, "STUDIES", {"toy": TOY})


def refused(ended, message):
    return (ended.code, ended.err, ended.out) == (2, f"error: {message}\n", "")


def test_the_list_has_every_study_its_points_and_its_question(typed):
    ended = typed("list", "studies")
    lines = {line.split()[0]: line for line in ended.out.splitlines()}
    assert ended.code == 0
    for name, study in STUDIES.items():
        assert lines[name].split()[1] == str(len(list(study.points("cpu"))))
        assert study.question in lines[name]


def test_an_unknown_study_gets_a_suggestion(typed, tmp_path):
    ended = typed("reproduce", "targts")
    assert refused(ended, "no study is called 'targts', did you mean 'targets'?")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--seeds", 0, "seeds must be >= 1, got 0"),
        ("--seeds", -3, "seeds must be >= 1, got -3"),
        ("--jobs", 0, "jobs must be >= 1, got 0"),
        ("--jobs", -1, "jobs must be >= 1, got -1"),
        ("--scale", "gpu", "scale must be one of cpu, paper, got 'gpu'"),
        ("--only", "pgd,krum", "no point of toy has 'pgd,krum' among its labels"),
    ],
)
def test_options_that_cannot_be_are_one_line(typed, tmp_path, option, value, message):
    assert refused(typed("reproduce", "toy", option, value), message)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("toy")
def test_a_broken_store_is_one_line(typed, tmp_path):
    (tmp_path / "runs.jsonl").write_text("{}\n")
    ended = typed("reproduce", "toy", "--render-only", "--store", "runs.jsonl")
    assert refused(ended, "runs.jsonl, line 1 is not a result: it has no key, config, summary")


@pytest.mark.usefixtures("toy")
def test_a_page_is_rendered_from_what_is_stored(typed, tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce, "run_missing", None)
    one = POINTS[1].experiment
    append(tmp_path / "runs.jsonl", Result(one.key(), one.changes(), SUMMARY))
    ended = typed("reproduce", "toy", "--render-only", "--store", "runs.jsonl", "--pages", "a/b")
    assert (ended.code, ended.out) == (0, "wrote a/b/toy.md\n")
    text = (tmp_path / "a" / "b" / "toy.md").read_text()
    assert "# toy: does it hold?" in text
    assert "| pgd | median | 1 | 91.5 |" in text
    assert "fedavg |" not in text


@pytest.mark.usefixtures("toy")
def test_pages_of_the_papers_scale_have_a_name_of_their_own(typed, tmp_path):
    for scale in ("cpu", "paper"):
        assert typed("reproduce", "toy", "--render-only", "--scale", scale).code == 0
    pages = sorted(path.name for path in (tmp_path / "docs" / "results").iterdir())
    assert pages == ["toy-paper.md", "toy.md"]


@pytest.mark.usefixtures("toy")
def test_all_is_every_study_with_results_and_one_file_of_them(typed, tmp_path):
    assert typed("reproduce", "all", "--render-only").out == "wrote docs/results/index.html\n"
    one = POINTS[1].experiment
    append(tmp_path / "results" / "runs.jsonl", Result(one.key(), one.changes(), SUMMARY))
    ended = typed("reproduce", "all", "--render-only")
    assert ended.out == "wrote docs/results/toy.md\nwrote docs/results/index.html\n"
    assert "<h1>toy: does it hold?</h1>" in (tmp_path / "docs/results/index.html").read_text()


def test_all_has_the_overview_where_an_attack_works(typed, tmp_path):
    for one in made_up(FIGURES).values():
        append(tmp_path / "results" / "runs.jsonl", one)
    ended = typed("reproduce", "all", "--render-only")
    assert (ended.code, ended.err) == (0, "")
    assert "wrote docs/results/overview.md\n" in ended.out
    page = (tmp_path / "docs/results/index.html").read_text()
    assert page.index('id="overview"') < page.index('id="targets"')


@pytest.mark.usefixtures("toy")
def test_remarks_beside_the_store_are_on_the_page(typed, tmp_path):
    (tmp_path / "results" / "remarks").mkdir(parents=True)
    (tmp_path / "results" / "remarks" / "toy.md").write_text("It does not.\n")
    assert typed("reproduce", "toy", "--render-only").code == 0
    assert "\n\nIt does not.\n\n|" in (tmp_path / "docs/results/toy.md").read_text()


def test_a_study_of_the_papers_size_has_nothing_at_ours(typed):
    assert refused(typed("reproduce", "paper-size"), "paper-size has no runs at cpu scale")


@pytest.mark.usefixtures("toy")
def test_a_study_is_run_stored_shown_and_rendered(typed, tmp_path):
    """One point and what it is compared with; then nothing is left to run."""
    pytest.importorskip("mlxtend")
    command = ("reproduce", "toy", "--only", "median", "--jobs", 1)
    ended = typed(*command)
    assert ended.code == 0, ended.err
    told, first, second, last = ended.out.splitlines()
    assert told.startswith("2 of 2 runs to make, 1 side by side")
    assert first.startswith("1/2  digits-edge none fedavg seed 0: MA ")
    assert first.endswith(" left)")
    assert second.endswith(" %")
    assert second.startswith("2/2  digits-edge pgd median seed 0: MA ")
    assert last == "wrote docs/results/toy.md"
    store = tmp_path / "results" / "runs.jsonl"
    one = POINTS[1].experiment
    assert list(read_store(store)) == [one.without_attack().key(), one.key()]
    rate = json.loads(store.read_text().splitlines()[1])["summary"]["ma_percent"]
    page = (tmp_path / "docs" / "results" / "toy.md").read_text()
    assert f"| pgd | median | 1 | {rate:.1f} |" in page
    assert typed(*command).out == "wrote docs/results/toy.md\n"
