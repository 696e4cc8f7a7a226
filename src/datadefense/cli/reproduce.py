"""``datadefense reproduce``: run a study's grid and render its results."""

import os
from pathlib import Path

from rich.console import Console
from rich.table import Table

from datadefense.reproduction.grid import run_missing
from datadefense.reproduction.store import Result, read_store
from datadefense.reproduction.studies import STUDIES
from datadefense.reproduction.study import Cell, Study, cells, page
from datadefense.settings import SettingsError, one_of, suggest, whole
from datadefense.storage import write_text

GALLERY = "attack-gallery"
"""The one study without runs."""


def list_studies() -> None:
    """Show the studies, how many points each has, and what it asks."""
    shown = Table("study", "points", "question", box=None, pad_edge=False)
    for study in STUDIES.values():
        shown.add_row(study.name, str(len(list(study.points("cpu")))), study.question)
    shown.add_row(GALLERY, "", "what do the poisoned examples look like?")
    Console().print(shown)


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
    """Run what is missing (unless ``run`` is false), then write the page from all results."""
    if name == GALLERY:
        _gallery(data, pages)
        return
    if name not in STUDIES:
        raise SettingsError(f"no study is called {name!r}{suggest(name, [*STUDIES, GALLERY])}")
    one_of("scale", scale, ("cpu", "paper"))
    whole("seeds", seeds, 1)
    console, study = Console(), STUDIES[name]
    side_by_side = jobs if jobs is not None else os.cpu_count() or 1
    whole("jobs", side_by_side, 1)

    def show(result: Result, done: int, total: int) -> None:
        one = result.summary
        console.print(
            f"{done}/{total}  {one.setup} {one.attack} {one.defense} seed {one.seed}: "
            f"MA {one.ma_percent:.1f} %, ASR {one.asr_percent:.1f} %, "
            f"excess {one.excess_asr_percent:.1f} %",
            highlight=False,
            soft_wrap=True,
        )

    if run:
        wanted = study.wanted(scale, seeds, only)
        if not wanted:
            raise SettingsError(f"no point of {name} has {only!r} among its labels")
        results = run_missing(wanted, store, data, jobs=side_by_side, told=show)
    else:
        results = read_store(store)
    pages.mkdir(parents=True, exist_ok=True)
    stem = name if scale == "cpu" else f"{name}-{scale}"
    written, picture = pages / f"{stem}.md", pages / f"{stem}.png"
    drawn = _draw(study, cells(study, scale, results), picture)
    write_text(written, page(study, scale, results, picture.name if drawn else ""))
    console.print(f"wrote {written}", highlight=False, soft_wrap=True)


def _draw(study: Study, found: list[Cell], picture: Path) -> bool:
    try:
        from datadefense.reproduction.figures import draw  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ValueError(f"figures need {error.name}: pip install 'datadefense[demo]'") from error
    return draw(study, found, picture)


def _gallery(data: Path | None, pages: Path) -> None:
    try:
        from datadefense.reproduction.attack_gallery import draw_gallery  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ValueError(f"figures need {error.name}: pip install 'datadefense[demo]'") from error
    pages.mkdir(parents=True, exist_ok=True)
    missing = draw_gallery(data, pages / f"{GALLERY}.png")
    console = Console()
    if missing:
        console.print(f"no data here for {', '.join(missing)}", highlight=False, soft_wrap=True)
    console.print(f"wrote {pages / GALLERY}.png", highlight=False, soft_wrap=True)
