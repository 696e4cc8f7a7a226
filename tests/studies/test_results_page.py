"""One page of all studies: what is in it, what it may not hold, and that it works in a browser."""

import re

import pytest
from tests.browser import Browser

pytest.importorskip("markdown_it")
from datadefense.report.html import asset
from datadefense.studies.results_page import STYLES, results_page

HOSTILE = "<script>alert(1)</script>"
TABLE = (
    "| defense | ASR % |\n|---|---:|\n| krum | 30.0 \u00b1 1 |\n| datadefense | 4.0 |\n| rfa | |\n"
)
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "README.md").write_text(
        f"# In words\n\nSee [this](toy.md), [that](other.md), [code](../x.py), "
        f"[web](https://example.org/a). {HOSTILE}\n"
    )
    long = "".join(f"| d{place} | {place} |\n" for place in range(12))
    (tmp_path / "toy.md").write_text(f"# toy\n\n![a picture](toy.png)\n\n{TABLE}{long}")
    (tmp_path / "toy.png").write_bytes(PNG)
    (tmp_path / "sneaky.md").write_text("![a](../secret.png) ![b](https://example.org/b.png)")
    (tmp_path / "left-out.md").write_text("never")
    return tmp_path


def test_the_opening_comes_first_then_what_exists_in_order(folder):
    page = results_page(folder, ["sneaky", "absent", "toy"])
    assert re.findall(r'<section id="([^"]*)"', page) == ["README", "sneaky", "toy"]
    assert "never" not in page
    assert page.count('<a href="#toy">') == 2


def test_links_stay_within_the_page_or_lead_to_the_web(folder):
    page = results_page(folder, ["toy"])
    assert set(re.findall(r'href="([^"]*)"', page)) == {
        "#README",
        "#toy",
        "https://example.org/a",
    }


def test_only_pictures_of_the_folder_are_taken_in(folder):
    (folder.parent / "secret.png").write_bytes(PNG)
    sources = re.findall(r'src="([^"]*)"', results_page(folder, ["toy", "sneaky"]))
    assert sources == ["data:image/png;base64,iVBORw0KGgo=", "", ""]


def test_nothing_of_the_text_is_run(folder):
    page = results_page(folder, ["toy"])
    assert HOSTILE not in page
    assert page.count("<script>") == 1
    assert " style=" not in page


def test_assets_do_not_end_their_block_or_write_markup():
    for name in (*STYLES, "results.js"):
        assert "</" not in asset(name)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|eval\(", asset("results.js"))


def test_it_sorts_searches_and_darkens_in_a_browser(folder, tmp_path_factory):
    path = folder / "index.html"
    path.write_text(results_page(folder, ["toy"]), encoding="utf-8")
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    try:
        page = browser.page(path)
        first = "document.querySelector('#toy tbody tr').innerText.trim().split(/\\s/)[0]"
        shown = "[...document.querySelectorAll('#toy tbody tr')].filter(r => !r.hidden).length"
        assert page.run(first) == "krum"
        page.click("#toy th:nth-child(2) button")
        assert page.run(first) == "d0"
        page.click("#toy th:nth-child(2) button")
        assert page.run(first) == "krum"
        assert page.run("document.querySelector('#toy tr.own').innerText").startswith("datadefense")
        assert page.run(shown) == 15
        page.click("#toy input")
        page.press(*"krum")
        assert page.run(shown) == 1
        dark = "getComputedStyle(document.body).backgroundColor"
        before = page.run(dark)
        page.click("#theme")
        assert page.run(dark) != before
        narrow = browser.page(path, width=400, dark=True)
        assert narrow.run(dark) != before
        assert narrow.run("document.documentElement.scrollWidth <= innerWidth")
        assert page.complaints() + narrow.complaints() == []
        assert page.requests() == []
    finally:
        browser.close()
