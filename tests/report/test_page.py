import base64
import hashlib
import html
import json
import re
import time

import pytest
from tests.report.synthetic import HOSTILE, Size, write_run

from datadefense.report.html import asset
from datadefense.report.page import LIBRARY, SCRIPTS, STYLES, render
from datadefense.report.reader import read_run

POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')


def blocks(page, tag):
    return re.findall(rf"<{tag}(?: [^>]*)?>(.*?)</{tag}>", page, re.DOTALL)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return render([read_run(write_run(tmp_path_factory.mktemp("page") / "run"))])


def test_what_happened_is_said_in_plain_html(page):
    assert "<title>digits-edge: pgd-replacement against datadefense</title>" in page
    assert "The backdoor was kept out." in page
    assert "Permission is hereby granted, free of charge" in page
    assert "points less than the 89.9 % of plain averaging" in page


def test_the_policy_allows_what_is_in_the_page_and_nothing_else(page):
    (policy,) = POLICY.findall(page)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    assert "unsafe" not in policy
    assert "http" not in policy
    data, library, script = blocks(page, "script")
    json.loads(data)
    for text, rule in (
        (library, "script-src"),
        (script, "script-src"),
        (*blocks(page, "style"), "style-src"),
    ):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in rules[rule]


def test_nothing_is_asked_for_from_elsewhere(page):
    assert not re.search(r"(src|href)=\"(?!data:|#)", page)
    assert not re.search(r"url\(|@import|\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon", page)
    assert not re.search(r"<[^>]* on[a-z]+=", POLICY.sub("", page).split("<script")[0])


def test_scripts_put_no_text_into_the_page_as_html():
    for name in SCRIPTS:
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", asset(name)
        ), name


def test_no_asset_ends_its_own_block():
    for name in (*STYLES, *SCRIPTS, LIBRARY):
        assert "</" not in asset(name) or name == LIBRARY
        assert not re.search(r"</(script|style)", asset(name)), name


def test_every_asset_says_what_it_is():
    for name in SCRIPTS:
        assert asset(name).startswith("// "), name
    for name in STYLES[1:]:
        assert asset(name).startswith("/* "), name


def test_hostile_text_stays_text(tmp_path):
    folder = write_run(tmp_path / "run", hostile=True)
    config = folder / "config.toml"
    config.write_text(config.read_text().replace('"datadefense"', json.dumps(HOSTILE)))
    page = render([read_run(folder)], title=HOSTILE, about=HOSTILE)
    assert HOSTILE not in page
    assert "<img" not in page.replace("data:image", "")
    assert html.escape(HOSTILE) in page
    data, *_ = blocks(page, "script")
    assert "<" not in data
    found = json.loads(data)["runs"][0]
    assert HOSTILE in found["clients"]["names"]
    assert HOSTILE in found["clients"]["patterns"]
    assert found["detector"]["examples"]["id"][0] == f"{HOSTILE}0"
    assert len(blocks(page, "script")) == 3


def test_a_template_in_the_data_is_not_filled_in(tmp_path):
    page = render([read_run(write_run(tmp_path / "run"))], title="{{data}} }} {{nothing}}")
    assert "<h1>{{data}} }} {{nothing}}</h1>" in page


def test_a_long_run_makes_a_small_page_quickly(tmp_path):
    size = Size(rounds=1500, clients=30, examples=500, attack_every=10, evaluate_every=10)
    folder = write_run(tmp_path / "run", size, kind="photos")
    start = time.process_time()
    run = read_run(folder)
    page = render([run])
    assert time.process_time() - start < 15
    assert len(page.encode()) < 6_000_000
    (data,) = json.loads(blocks(page, "script")[0])["runs"]
    assert len(data["clients"]["rounds"]) == len(data["detector"]["rounds"]) == 1500
    assert len(render([run] * 3).encode()) < 8_000_000


def test_a_run_like_the_demo_is_smaller_still(tmp_path):
    size = Size(rounds=30, clients=10, examples=456)
    page = render([read_run(write_run(tmp_path / "run", size))])
    assert len(page.encode()) < 1_500_000
