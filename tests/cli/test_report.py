"""``datadefense report`` as a user types it."""

import pytest
from tests.report.synthetic import Size, write_run

from datadefense.runs.files import hold


def test_one_run_gets_its_page_in_its_folder(typed, tmp_path):
    write_run(tmp_path / "a")
    ended = typed("report", "a")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("wrote a/report.html (0.")
    assert "The backdoor was kept out." in (tmp_path / "a" / "report.html").read_text()


def test_several_runs_get_one_page_beside_them(typed, tmp_path):
    write_run(tmp_path / "runs" / "a")
    write_run(tmp_path / "runs" / "deep" / "b", Size(rounds=3), defense="median")
    ended = typed("report", "runs/a", "runs/deep/b", "runs/a/.")
    assert ended.code == 0, ended.err
    page = (tmp_path / "runs" / "report.html").read_text()
    assert "datadefense, 12 rounds and median, 3 rounds kept the backdoor out." in page
    assert typed("report", "runs/a", "runs/deep/b", "--out", "x.html").out.startswith(
        "wrote x.html"
    )
    assert (tmp_path / "x.html").read_text() == page


def test_an_unfinished_run_has_a_page_that_says_so(typed, tmp_path):
    folder = write_run(tmp_path / "a")
    lines = (folder / "rounds.jsonl").read_text().splitlines(keepends=True)
    (folder / "rounds.jsonl").write_text("".join(lines[:4]))
    assert typed("report", "a").code == 0
    assert "not finished: 4 of 12 rounds" in (folder / "report.html").read_text()


def test_a_run_under_way_is_only_read(typed, tmp_path):
    """Another process holds it and is writing a line."""
    folder = write_run(tmp_path / "a")
    with (folder / "rounds.jsonl").open("a") as lines:
        lines.write('{"round": 13, "cli')
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with hold(folder):
        assert typed("report", "a").code == 0
        assert typed("compare", "a", "a").code == 0
        assert typed("export", "a", "out.csv").code == 0
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert after.pop("report.html")
    assert after == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("empty",), "empty holds no run: there is no rounds.jsonl"),
        (("nowhere",), "nowhere is not a folder"),
        (("a", "empty"), "empty holds no run"),
        (("a", "--out", "no/such/place.html"), "no/such/place.html"),
    ],
)
def test_a_mistake_is_one_line(typed, tmp_path, arguments, message):
    write_run(tmp_path / "a", Size(rounds=2))
    (tmp_path / "empty").mkdir()
    ended = typed("report", *arguments)
    assert ended.code == 2
    assert ended.err.startswith("error: ")
    assert message in ended.err
    assert len(ended.err.strip().splitlines()) == 1
