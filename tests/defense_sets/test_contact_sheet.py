"""The contact sheet as a browser gets it."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
from tests.browser import Browser
from tests.data.pictures import images

from datadefense.data.image_files import from_file
from datadefense.defense_sets.contact_sheet import render
from datadefense.defense_sets.folder import DefenseSetSource

pytest.importorskip("PIL")

KNOWN = torch.tensor([False, True, False])
LABELS = torch.tensor([3, 1, 2])
HOSTILE = '<script>alert("x")</script>'


def sheet(inputs, scores=None, texts=None, folder="own", **changes):
    fields = {"ids": ("a", "b", "c")} | changes
    return render(DefenseSetSource(inputs, LABELS, KNOWN, **fields), Path(folder), scores, texts)


def ids(page):
    return re.findall(r'type="checkbox" value="([^"]*)"', page)


def test_images_are_in_the_page_to_the_pixel():
    pixels = images(3, "sheet")
    page = sheet(pixels)
    found = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    assert len(found) == 3
    for content, image in zip(found, pixels, strict=True):
        assert torch.equal(from_file(base64.b64decode(content), "page"), image)
    assert "image-rendering: pixelated" in page
    assert "http:" not in page
    assert "https:" not in page
    assert ids(page) == ["a", "b", "c"]
    assert page.count("<b>known clean</b>") == 1
    assert "3 examples, 1 known clean (green), in the order of the folder" in page
    assert "gamma" not in page.partition("<main")[2]


def test_the_strangest_come_first():
    page = sheet(images(3, "sheet", 1), torch.tensor([0.5, 0.25, 1.0]))
    assert ids(page) == ["c", "a", "b"]
    assert re.findall(r"label (\d)<br>gamma ([\d.]+)", page) == [
        ("2", "1.00"),
        ("3", "0.50"),
        ("1", "0.25"),
    ]
    assert "the highest gamma (the strangest) first" in page


def test_texts_and_tokens():
    page = sheet(("one & two", HOSTILE, "three"))
    assert '<span class="text">one &amp; two</span>' in page
    tokens = torch.tensor([[0, 7, 8], [0, 0, 9], [4, 5, 6]])
    assert '<span class="text">7 8</span>' in sheet(tokens)
    page = sheet(tokens, texts=["good film", "bad", HOSTILE])
    assert '<span class="text">good film</span>' in page
    assert "<img" not in page


def test_whatever_people_write_stays_text():
    """Scripts in texts, ids, provenance, notes and the folder's name are shown, not run."""
    many = (HOSTILE, '" onclick="x', "'; rm -rf '")
    page = sheet(many, ids=many, provenance=many, notes=many, folder=f"{HOSTILE} it's")
    seen = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attributes):
            seen.append((tag, dict(attributes)))

    Tags().feed(page)
    assert [tag for tag, _ in seen].count("script") == 1
    assert not any("onclick" in attributes for _, attributes in seen)
    assert [one["value"] for tag, one in seen if tag == "input"] == list(many)
    assert "alert(" not in page.partition("<script>const")[2].partition("</script>")[0]


def test_a_folder_or_an_id_that_looks_like_an_option_is_none():
    page = sheet(("a", "b", "c"), ids=("--not-clean", "-x", "c"), folder="--help")
    assert "<footer><code>datadefense defense-set mark -- --help</code>" in page


HOSTILE_SHEET = {"ids": ("-a", "b c", "d"), "scores": torch.tensor([0.5, 0.25, 1.0])}


def test_the_policy_lets_nothing_in_but_the_page_itself():
    page = sheet((HOSTILE, "b", "c"), **HOSTILE_SHEET)
    content = re.search('Content-Security-Policy" content="([^"]+)"', page)[1]
    for tag in ("script", "style"):
        text = re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}';" in content
    assert content.startswith("default-src 'none'; ")
    assert "unsafe" not in content
    assert 'style="' not in page


def test_the_sheet_in_a_browser(tmp_path):
    """Ticking works, and a script that came with the data does not run."""
    page = sheet((HOSTILE, "b", "c"), **HOSTILE_SHEET)
    path = tmp_path / "sheet.html"
    path.write_text(page.replace("</main>", "<script>document.title='ran'</script></main>"))
    browser = Browser(tmp_path)
    try:
        shown = browser.page(path)
        assert shown.run("document.title") != "ran"
        shown.click("main label:nth-child(2)")
        assert shown.run("document.querySelector('footer code').textContent").endswith(" -- own -a")
        assert shown.run("getComputedStyle(document.querySelector('main')).display") == "grid"
    finally:
        browser.close()
