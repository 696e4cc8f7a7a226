"""``datadefense reproduce``: run a study's grid and render its results."""

import os
from pathlib import Path

from rich.console import Console
from rich.table import Table

from datadefense.reproduction.grid import run_missing
from datadefense.reproduction.store import Result, read_store
from datadefense.reproduction.studies import STUDIES
from datadefense.reproduction.study import page
from datadefense.settings import SettingsError, one_of, suggest, whole
from datadefense.storage import write_text


def list_studies() -> None:
    """Show the studies, how many points each has, and what it asks."""
    shown = Table("study", "points", "question", box=None, pad_edge=False)
    for study in STUDIES.values():
        shown.add_row(study.name, str(len(list(study.points("cpu")))), study.question)
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
    if name not in STUDIES:
        raise SettingsError(f"no study is called {name!r}{suggest(name, STUDIES)}")
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
    written = pages / f"{name}.md" if scale == "cpu" else pages / f"{name}-{scale}.md"
    written.parent.mkdir(parents=True, exist_ok=True)
    write_text(written, page(study, scale, results))
    console.print(f"wrote {written}", highlight=False, soft_wrap=True)
