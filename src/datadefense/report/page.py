"""The page: styles, scripts and data in one file, with a policy that forbids loading anything."""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

from datadefense.core.storage import write_text
from datadefense.report.html import asset, filled, policy
from datadefense.report.page_data import page_data, title_of
from datadefense.report.reader import StoredRun, read_run
from datadefense.runs.files import REPORT

STYLES = (
    "uplot/uPlot.min.css",
    "colours.css",
    "page.css",
    "charts.css",
    "gallery.css",
    "screens.css",
    "print.css",
)
LIBRARY, LICENCE = "uplot/uPlot.iife.min.js", "uplot/LICENSE"
SCRIPTS = (
    "element.js",
    "decode.js",
    "theme.js",
    "view.js",
    "tooltip.js",
    "legend.js",
    "canvas_plot.js",
    "heatmap.js",
    "value_axis.js",
    "lines.js",
    "clients.js",
    "summary.js",
    "curves.js",
    "weights.js",
    "bands.js",
    "gamma.js",
    "gallery.js",
    "evidence.js",
    "theta.js",
    "timing.js",
    "details.js",
    "page.js",
)
"""In the order in which they are run, as one."""


def render(runs: Sequence[StoredRun], title: str | None = None, about: str = "") -> str:
    """Return the page of one run or more; ``about`` is a paragraph below the title."""
    data = page_data(runs)
    heading = title or title_of(runs)
    says = data["overall"] if len(runs) > 1 else data["runs"][0]["verdict"]
    style = "\n".join(map(asset, STYLES))
    library, script = f"/*\n{asset(LICENCE)}*/\n{asset(LIBRARY)}", _script()
    return filled(
        asset("page.html"),
        {
            "policy": policy([style], [library, script]),
            "title": escape(heading),
            "about": escape(about),
            "verdict": escape(says),
            "style": style,
            "library": library,
            "script": script,
            "data": json.dumps(data, separators=(",", ":"), allow_nan=False).replace(
                "<", "\\u003c"
            ),
        },
    )


def write_page(
    path: Path, runs: Sequence[StoredRun], title: str | None = None, about: str = ""
) -> None:
    """Write the page."""
    write_text(path, render(runs, title, about))


def write_run_page(folder: Path) -> None:
    """Write the page of one run into its folder."""
    write_page(folder / REPORT, [read_run(folder)])


def _script() -> str:
    parts = "\n".join(map(asset, SCRIPTS))
    return f'(() => {{\n"use strict";\n{parts}}})();'
