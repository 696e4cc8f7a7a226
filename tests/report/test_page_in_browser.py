"""The page in a real browser: it draws, answers to mouse and keys, and asks nobody for anything."""

import pytest
from tests.browser import Browser
from tests.report.synthetic import HOSTILE, Size, write_run

from datadefense.report.page import write_page
from datadefense.report.reader import read_run
from datadefense.runs.tables import HEADINGS

CHARTS = ("asr", "ma", "weights", "bands", "gamma", "evidence", "theta", "timing")
PIXELS = """canvas => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  return context.getImageData(0, 0, canvas.width, canvas.height).data;
}"""
"""A canvas as numbers, without a trace on it."""
PAINTED = f"""(() => {{
  const seen = {{}};
  for (const canvas of document.querySelectorAll("canvas")) {{
    const host = canvas.closest("[id$='-chart']");
    if (!host || !host.clientWidth) continue;
    const data = ({PIXELS})(canvas);
    let painted = 0;
    for (let i = 0; i < data.length; i += 4) {{
      const [red, green, blue] = data.slice(i, i + 3);
      painted += Math.max(red, green, blue) - Math.min(red, green, blue) > 40;
    }}
    seen[host.id.replace("-chart", "")] = painted / (data.length / 4);
  }}
  return seen;
}})()"""
"""Share of each chart's pixels that are neither grey nor empty, of those that can be seen."""
SHOWN = "['from', 'to'].map(id => Number(document.getElementById(id).value))"
TOOLTIP = "(tip => tip.hidden ? null : tip.innerText)(document.querySelector('.tooltip'))"


def assert_drawn(painted):
    """Heatmaps fill their place; lines and points leave a trace."""
    assert set(painted) == set(CHARTS)
    assert painted["weights"] > 0.3, painted
    assert painted["gamma"] > 0.1, painted
    assert min(painted.values()) > 0.0005, painted


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One page of one run, one of three, and one of a run whose clients are hostile."""
    folder = tmp_path_factory.mktemp("pages")
    runs = [
        read_run(write_run(folder / name, defense=name))
        for name in ("fedavg", "median", "datadefense")
    ]
    hostile = read_run(write_run(folder / "hostile", hostile=True, kind="tweets"))
    pages = {"one": runs[-1:], "three": runs, "hostile": [hostile]}
    for name, chosen in pages.items():
        title, about = (HOSTILE, HOSTILE) if name == "hostile" else (None, "")
        write_page(folder / f"{name}.html", chosen, title, about)
    return {name: folder / f"{name}.html" for name in pages}


@pytest.fixture
def opened(browser, files):
    """A function that opens a page; in the end the page must have had nothing to complain about."""
    pages = []

    def call(name, **options):
        pages.append(browser.page(files[name], **options))
        return pages[-1]

    yield call
    for page in pages:
        assert page.complaints() == []
        assert page.requests() == []
        page.send("Page.close")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1200, 360])
def test_every_chart_draws_and_nothing_is_wider_than_the_screen(opened, width, dark):
    page = opened("one", width=width, dark=dark)
    assert_drawn(page.run(PAINTED))
    assert page.run("document.documentElement.scrollWidth") <= width
    background = page.run("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(18, 22, 27)" if dark else "rgb(255, 255, 255)")


def test_the_theme_button_changes_page_and_charts(opened):
    page = opened("one")
    canvas = "document.querySelector('#weights-chart canvas')"
    corner = f"[...({PIXELS})({canvas}).slice(4 * 60 * {canvas}.width).slice(1600, 1604)]"
    background = "getComputedStyle(document.body).backgroundColor"
    before = page.run(corner), page.run(background)
    assert page.run("document.getElementById('theme').textContent") == "Dark theme"
    page.click("#theme")
    assert page.run("document.documentElement.dataset.theme") == "dark"
    after = page.run(corner), page.run(background)
    assert before[0] != after[0]
    assert before[1] != after[1]
    page.click("#theme")
    assert (page.run(corner), page.run(background)) == before


@pytest.mark.parametrize(
    "chart", ["#weights-chart canvas", "#ma-chart .u-over", "#gamma-chart canvas"]
)
def test_dragging_zooms_all_charts_and_a_double_click_shows_all_again(opened, chart):
    page = opened("one")
    assert page.run(SHOWN) == [1, 12]
    page.drag(chart, 0.4, 0.7)
    first, last = page.run(SHOWN)
    assert 3 <= first < last <= 10
    assert_drawn(page.run(PAINTED))
    page.click(chart, times=2)
    assert page.run(SHOWN) == [1, 12]


def test_the_range_can_be_typed(opened):
    page = opened("one")
    page.run(
        "(() => { const from = document.getElementById('from'); from.value = 5;"
        "from.dispatchEvent(new Event('change')); })()"
    )
    assert page.run(SHOWN) == [5, 12]
    page.click("#all")
    assert page.run(SHOWN) == [1, 12]


def test_hovering_tells_what_is_there(opened):
    page = opened("one")
    box = page.box("#weights-chart canvas")
    page.mouse("mouseMoved", box["x"] + 80, box["y"] + 15)
    page.to_valid_params()
    lines = page.run(TOOLTIP).split("\n")
    assert lines[0] == "Round 1"
    assert lines[1] == "client attacker, an attacker"
    assert lines[2:5] == [
        "left out",
        "reason: moved 9 times as far as is free of blame",
        "weight 0",
    ]
    assert "worse on clean 4" in lines
    assert "moved far 9" in lines
    box = page.box("#gamma-chart canvas")
    page.mouse("mouseMoved", box["x"] + box["width"] / 2, box["y"] + 20)
    page.to_valid_params()
    assert "marked as suspect" in page.run(TOOLTIP)
    assert page.run("document.querySelectorAll('.tooltip img').length") == 1
    box = page.box("#asr-chart .u-over")
    page.mouse("mouseMoved", box["x"] + box["width"] / 2, box["y"] + 20)
    page.to_valid_params()
    assert page.run(TOOLTIP).startswith("Round 6, attacked\nfloor: 3 %\ndatadefense: ")
    page.mouse("mouseMoved", 3, 3)
    page.to_valid_params()
    assert page.run(TOOLTIP) is None


@pytest.mark.parametrize(
    "chart", ["#weights-chart canvas", "#ma-chart .chart", "#evidence-chart canvas"]
)
def test_charts_can_be_read_and_zoomed_with_keys(opened, chart):
    page = opened("one")
    page.run(f"document.querySelector('{chart}').focus()")
    page.press("ArrowRight", "ArrowRight")
    assert page.run("document.getElementById('spoken').textContent").startswith("Round 2")
    page.press("+")
    first, last = page.run(SHOWN)
    assert 1 < first < last < 12
    page.press("0")
    assert page.run(SHOWN) == [1, 12]


def test_charts_have_text_alternatives(opened):
    page = opened("one")
    labels = page.run(
        "[...document.querySelectorAll('canvas[role=img], .chart[role=img]')]"
        ".map(e => e.getAttribute('aria-label'))"
    )
    assert len(labels) == len(CHARTS)
    assert all(len(label) > 30 for label in labels)
    assert any("Attackers had a mean weight of 0.000." in label for label in labels)
    assert page.run("[...document.querySelectorAll('.gallery img')].every(i => i.alt)")
    nameless = page.run(
        "[...document.querySelectorAll('button, input, select')].filter(e => !e.closest('[hidden]')"
        "&& !(e.textContent || e.labels?.length || e.ariaLabel)).length"
    )
    assert nameless == 0


def test_the_gallery_shows_pictures_by_kind(opened):
    page = opened("one")
    cards = "document.querySelectorAll('.card').length"
    assert page.run(cards) == 10
    page.wait_for("[...document.querySelectorAll('.card img')].every(i => i.naturalWidth === 28)")
    page.click("input[value=all]")
    assert page.run(cards) == 24
    page.click("#more")
    assert page.run(cards) == 40
    gammas = page.run(
        "[...document.querySelectorAll('.card figcaption span:nth-child(2)')].map(e => e.innerText)"
    )
    values = [float(text.removeprefix("gamma ")) for text in gammas]
    assert values == sorted(values, reverse=True)
    page.click("input[value=missed]")
    assert page.run(cards) == 0
    page.click("input[value=wrong]")
    assert page.run(cards) == 2
    assert page.run("document.querySelectorAll('.badge.wrong').length") == 2


def test_switches_change_what_is_drawn(opened):
    page = opened("one")
    before = page.run(PAINTED)["gamma"]
    page.click("#gamma-legend label:last-child input")
    assert page.run(PAINTED)["gamma"] < before
    order = "document.querySelector('#evidence-chart canvas').toDataURL()"
    first = page.run(order)
    page.click("#evidence-legend input")
    second = page.run(order)
    assert first != second
    page.run(
        "(() => { const choice = document.getElementById('evidence-name'); choice.value = 'loss';"
        "choice.dispatchEvent(new Event('change')); })()"
    )
    page.to_valid_params()
    assert page.run(order) not in (first, second)


def test_several_runs_are_compared_chosen_and_switched_off(opened):
    page = opened("three")
    rows = page.run(
        "[...document.querySelectorAll('.comparison tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.textContent))"
    )
    assert [row[0] for row in rows] == ["\u2713fedavg", "\u2713median", "\u2713datadefense"]
    assert all(len(row) == len(HEADINGS) for row in rows)
    assert page.run("document.querySelector('.comparison :checked').id") == "choose-2"
    assert_drawn(page.run(PAINTED))
    page.click("#choose-1")
    assert page.run("document.getElementById('run').value") == "1"
    assert page.run("document.getElementById('weightless-text').hidden") is False
    assert set(page.run(PAINTED)) == {"asr", "ma", "timing"}
    page.click(".comparison tbody tr:first-child td")
    assert set(page.run(PAINTED)) == {"asr", "ma", "weights", "timing"}
    picture = "document.querySelector('#asr-chart canvas').toDataURL()"
    shown = page.run(picture)
    page.click("#curve-legend button:nth-child(2)")
    assert (
        page.run("document.querySelector('#curve-legend button:nth-child(2)').ariaPressed")
        == "false"
    )
    assert page.run(picture) != shown
    page.click("#curve-legend button:nth-child(2)")
    assert page.run(picture) == shown


def test_text_of_clients_is_never_markup(opened):
    page = opened("hostile")
    assert page.run("document.querySelectorAll('img').length") == 0
    assert page.run("document.body.id") == ""
    assert page.run("document.querySelectorAll('script').length") == 3
    box = page.box("#weights-chart canvas")
    page.mouse("mouseMoved", box["x"] + 80, box["y"] + 15)
    page.to_valid_params()
    assert HOSTILE in page.run(TOOLTIP)
    assert HOSTILE in page.run("document.querySelector('h1').innerText")
    assert HOSTILE in page.run("document.getElementById('events').textContent")
    assert HOSTILE in page.run("document.querySelector('.card code').innerText")
    assert page.run("document.querySelectorAll('.card blockquote').length") > 0


def test_it_prints(opened):
    page = opened("three", dark=True)
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 50_000
    page.to_valid_params()
    assert page.run("document.documentElement.dataset.theme") == "dark"
    assert page.run("document.documentElement.classList.contains('printing')") is False


@pytest.mark.parametrize("rounds", [0, 1])
def test_runs_that_have_hardly_begun(browser, tmp_path, rounds):
    folder = write_run(tmp_path / "run", Size(rounds=2))
    lines = (folder / "rounds.jsonl").read_text().splitlines(keepends=True)
    (folder / "rounds.jsonl").write_text("".join(lines[:rounds]))
    write_page(folder / "report.html", [read_run(folder)])
    page = browser.page(folder / "report.html")
    assert "not finished" in page.run("document.querySelector('.note').innerText")
    assert set(page.run(PAINTED)) == (set(CHARTS) if rounds else set())
    assert page.complaints() == []
    page.send("Page.close")


def test_a_single_evaluation_is_a_point(browser, tmp_path):
    folder = write_run(tmp_path / "run", Size(rounds=7, evaluate_every=10))
    write_page(folder / "report.html", [read_run(folder)])
    page = browser.page(folder / "report.html")
    assert page.run(PAINTED)["ma"] > 0.0003
    page.send("Page.close")


def test_a_long_run_opens_and_zooms_quickly(browser, tmp_path):
    size = Size(rounds=1500, clients=30, examples=500, attack_every=10, evaluate_every=10)
    folder = write_run(tmp_path / "run", size)
    write_page(folder / "report.html", [read_run(folder)])
    page = browser.page(folder / "report.html")
    assert_drawn(page.run(PAINTED))
    seconds = page.run("performance.getEntriesByType('navigation')[0].loadEventEnd / 1000")
    assert seconds < 15
    page.drag("#gamma-chart canvas", 0.5, 0.6)
    first, last = page.run(SHOWN)
    assert last - first < 300
    assert_drawn(page.run(PAINTED))
    assert page.complaints() == []
    page.send("Page.close")
