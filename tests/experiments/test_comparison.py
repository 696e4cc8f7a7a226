import xml.etree.ElementTree as ET
from dataclasses import replace

from tests.experiments.summaries import SUMMARY

from datadefense.experiments.comparison import HEADINGS, Compared, cells, chart, render_comparison
from datadefense.simulation.rounds import RoundRecord


def compared(name, rates):
    records = [
        RoundRecord(i, [1, 2], [2] if i % 2 else [], [0.5, 0.5], {}, {}, 90.0, rate)
        for i, rate in enumerate(rates, 1)
    ]
    summary = replace(SUMMARY, defense=name, asr_percent=12.34)
    return Compared(summary, records, f"{name}/report.html")


def test_a_chart_has_a_line_a_run_and_a_mark_an_attacked_round():
    runs = [compared("fedavg", [0.0, None, 50.0]), compared("krum", [1.0, 2.0, 3.0])]
    svg = ET.fromstring(chart(runs, "asr_percent"))
    lines = svg.findall("polyline")
    assert [len(line.get("points").split()) for line in lines] == [2, 3]
    assert len(svg.findall("path")) == 2
    names = [text.text for text in svg.findall("text")]
    assert {"fedavg", "krum"} <= set(names)
    heights = [float(text.get("y")) for text in svg.findall("text") if text.text in names[5:7]]
    assert abs(heights[0] - heights[1]) >= 13


def test_the_page_shows_every_run_and_escapes_names():
    page = render_comparison("t <b>", "a & b", [compared("fedavg", [1.0]), compared("<x>", [2.0])])
    assert "t &lt;b&gt;" in page
    assert "a &amp; b" in page
    assert "&lt;x&gt;" in page
    assert 'href="fedavg/report.html"' in page
    assert page.count("<polyline") == 4


def test_cells_fit_the_headings():
    assert len(cells(compared("krum", [1.0]).summary)) == len(HEADINGS)
    assert cells(compared("krum", [1.0]).summary)[2] == "12.3"
