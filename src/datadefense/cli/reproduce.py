"""``datadefense reproduce``: run a study's grid and render its results."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

from rich.table import Table

from datadefense.cli.plain_console import plain_console
from datadefense.core.settings import SettingsError, check_choice, check_int, suggest
from datadefense.core.storage import write_text
from datadefense.studies.grid import missing_of, run_missing
from datadefense.studies.overview import overview, overview_page
from datadefense.studies.store import Result, read_store
from datadefense.studies.studies import STUDIES
from datadefense.studies.study import Cell, Study, cells, page

GALLERY = "attack-gallery"
"""The one study without runs."""
ALL = "all"
"""Every study."""
REMARKS = "remarks"
"""Folder beside the store: what a person has to say on a study, `NAME.md`."""


def list_studies() -> None:
    """Show the studies, how many points each has, and what it asks."""
    shown = Table("study", "points", "question", box=None, pad_edge=False)
    for study in STUDIES.values():
        shown.add_row(study.name, str(len(list(study.points("cpu")))), study.question)
    shown.add_row(GALLERY, "", "what do the poisoned examples look like?")
    shown.add_row(ALL, "", "every study, an overview, and one page of everything")
    plain_console().print(shown)


def reproduce_study(
    name: str,
    *,
    scale: str,
    seeds: int,
    jobs: int | None,
    only: str,
    data: Path | None,
    store: Path,
    pages: Path,
    run: bool,
) -> None:
    """Run what is missing (unless ``run`` is false), then write the page from all results.

    ``all`` is every study of the scale, then the overview and one HTML file of all pages.
    """
    if name == GALLERY:
        _gallery(data, pages)
        return
    if name not in (*STUDIES, ALL):
        known = [*STUDIES, GALLERY, ALL]
        raise SettingsError(f"no study is called {name!r}{suggest(name, known)}")
    check_choice("scale", scale, ("cpu", "paper"))
    check_int("seeds", seeds, 1)
    console = plain_console()
    chosen = [
        study for study in STUDIES.values() if name in (study.name, ALL) and _has_runs(study, scale)
    ]
    if not chosen:
        raise SettingsError(f"{name} has no runs at {scale} scale")
    side_by_side = jobs if jobs is not None else os.cpu_count() or 1
    check_int("jobs", side_by_side, 1)

    begun = time.monotonic()

    def show(result: Result, done: int, total: int) -> None:
        summary = result.summary
        left = (time.monotonic() - begun) / done * (total - done)
        console.print(
            f"{done}/{total}  {summary.setup} {summary.attack} {summary.defense} "
            f"seed {summary.seed}: "
            f"MA {summary.ma_percent:.1f} %, ASR {summary.asr_percent:.1f} %, "
            f"excess {summary.excess_asr_percent:.1f} %"
            + (f" ({_about(left)} left)" if left else ""),
            highlight=False,
            soft_wrap=True,
        )

    if run:
        wanted = {
            experiment.key(): experiment
            for study in chosen
            for experiment in study.wanted(scale, seeds, only)
        }
        if not wanted:
            raise SettingsError(f"no point of {name} has {only!r} among its labels")
        curves = any(study.needs_curves for study in chosen)
        missing = missing_of(wanted.values(), read_store(store), curves=curves)
        if missing:
            console.print(
                f"{len(missing)} of {len(wanted)} runs to make, {side_by_side} side by side, "
                "a task's first after its warm start; what is stopped goes on from there",
                highlight=False,
                soft_wrap=True,
            )
        results = run_missing(
            missing.values(), store, data, jobs=side_by_side, report=show, curves=curves
        )
    else:
        results = read_store(store)
    pages.mkdir(parents=True, exist_ok=True)
    written = [
        _page(study, scale, results, pages, store.parent / REMARKS)
        for study in chosen
        if name != ALL or cells(study, scale, results)
    ]
    if name == ALL:
        if run:
            _gallery(data, pages)
        written += _together(results, pages)
    for path in written:
        console.print(f"wrote {path}", highlight=False, soft_wrap=True)


def _about(seconds: float) -> str:
    """Return a length of time as a person would say it.

    >>> _about(20), _about(400), _about(5_000)
    ('a minute', '7 minutes', '1.4 hours')
    """
    minutes = seconds / 60
    if minutes >= 60:
        return f"{minutes / 60:.1f} hours"
    return "a minute" if minutes < 1.5 else f"{minutes:.0f} minutes"


def _has_runs(study: Study, scale: str) -> bool:
    return any(True for _ in study.points(scale))


def _page(
    study: Study, scale: str, results: Mapping[str, Result], pages: Path, remarks: Path
) -> Path:
    """Write the study's page and picture, with the remarks that lie beside the store."""
    stem = study.name if scale == "cpu" else f"{study.name}-{scale}"
    written, picture, said = pages / f"{stem}.md", pages / f"{stem}.png", remarks / f"{stem}.md"
    drawn = _draw(study, cells(study, scale, results), picture)
    words = said.read_text(encoding="utf-8") if said.exists() else ""
    write_text(written, page(study, scale, results, picture.name if drawn else "", words))
    return written


def _together(results: Mapping[str, Result], pages: Path) -> list[Path]:
    """Write the overview, and one file of all pages that are there, of whatever scale."""
    try:
        from datadefense.studies.heat_map import draw_overview  # noqa: PLC0415 - an extra
        from datadefense.studies.results_page import (  # noqa: PLC0415 - an extra
            page_names,
            results_page,
        )
    except ImportError as error:
        raise _needs(error) from error
    written = []
    found = overview(results)
    if found.cases:
        draw_overview(found, pages / "overview.png")
        write_text(pages / "overview.md", overview_page(found, "overview.png"))
        written.append(pages / "overview.md")
    write_text(pages / "index.html", results_page(pages, page_names(STUDIES)))
    return [*written, pages / "index.html"]


def _needs(error: ImportError) -> SettingsError:
    return SettingsError(f"figures need {error.name}: pip install 'datadefense[demo]'")


def _draw(study: Study, found: list[Cell], picture: Path) -> bool:
    try:
        from datadefense.studies.figures import draw  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise _needs(error) from error
    return draw(study, found, picture)


def _gallery(data: Path | None, pages: Path) -> None:
    try:
        from datadefense.studies.attack_gallery import draw_gallery  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise _needs(error) from error
    pages.mkdir(parents=True, exist_ok=True)
    console = plain_console()
    for task, reason in draw_gallery(data, pages / f"{GALLERY}.png").items():
        console.print(f"without {task}: {reason}", highlight=False, soft_wrap=True)
    console.print(f"wrote {pages / GALLERY}.png", highlight=False, soft_wrap=True)
