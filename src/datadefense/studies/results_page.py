"""All studies as one page: their markdown, tables and pictures in a file that opens from disk."""

import base64
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from markdown_it import MarkdownIt

from datadefense.report.html import asset, filled, policy

STYLES = ("colours.css", "page.css", "results.css")
OPENING = "README"
"""The page that comes first, if there is one."""


def page_names(studies: Iterable[str]) -> list[str]:
    """Return the pages that studies can have, in their order: at cpu scale, then at the paper's.

    >>> page_names(["table1"])
    ['overview', 'table1', 'table1-paper']
    """
    return ["overview", *(stem for name in studies for stem in (name, f"{name}-paper"))]


def results_page(folder: Path, names: Sequence[str]) -> str:
    """Return the page of the folder's markdown files with these names, those that exist.

    Pictures are put into the page, links between the files become links within it, and those to
    anything else that is not on the web lose their target.
    """
    present = [name for name in (OPENING, *names) if (folder / f"{name}.md").exists()]
    style, script = "\n".join(map(asset, STYLES)), asset("results.js")
    return filled(
        asset("results.html"),
        {
            "policy": policy([style], [script]),
            "title": "What was measured",
            "style": style,
            "links": " ".join(f'<a href="#{escape(n)}">{escape(_said(n))}</a>' for n in present),
            "body": "\n".join(_section(folder, name, present) for name in present),
            "script": script,
        },
    )


def _said(name: str) -> str:
    return "in words" if name == OPENING else name


def _section(folder: Path, name: str, present: Sequence[str]) -> str:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    text = markdown.render((folder / f"{name}.md").read_text(encoding="utf-8"))
    text = re.sub(r'(?<=<img src=")[^"]*(?=")', lambda found: _picture(folder, found[0]), text)
    text = re.sub(r' href="([^"]*)"', lambda found: _link(found[1], present), text)
    text = re.sub(r' style="text-align:\w+"', "", text)
    return f'<section id="{escape(name)}">\n{text}</section>'


def _picture(folder: Path, source: str) -> str:
    """Return a picture of the folder as part of the page; anything else becomes empty."""
    path = folder / source
    inside = path.suffix == ".png" and path.resolve().parent == folder.resolve()
    if not inside or not path.exists():
        return ""
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"


def _link(target: str, present: Sequence[str]) -> str:
    name = target.removesuffix(".md")
    if name in present:
        return f' href="#{escape(name)}"'
    return f' href="{target}"' if target.startswith("https://") else ""
