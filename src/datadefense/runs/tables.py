"""Several runs side by side: a row of figures a run, under headings."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

from datadefense.runs.summary import Summary
from datadefense.simulation.rounds import RoundRecord

COLOURS = ("#d55e00", "#0072b2", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#595959", "#000000")
"""Of the runs, in their order, from Okabe and Ito's palette; the first eight can be told apart."""
COLUMNS: Mapping[str, tuple[str, str]] = {
    "defense": ("defense", ""),
    "MA %": ("ma_percent", ".1f"),
    "MA without attack %": ("calm_ma_percent", ".1f"),
    "ASR %": ("asr_percent", ".1f"),
    "final ASR %": ("final_asr_percent", ".1f"),
    "floor %": ("asr_floor_percent", ".1f"),
    "excess %": ("excess_asr_percent", ".1f"),
    "attacker's weight": ("attacker_weight_mean", ".3f"),
    "honest excluded %": ("honest_excluded_percent", ".1f"),
    "detector hits %": ("detector_hits_percent", ".1f"),
    "s/round": ("seconds_per_round", ".2f"),
}
"""Headings, and the figure and its form below each."""
HEADINGS = tuple(COLUMNS)


@dataclass(frozen=True, slots=True)
class Compared:
    """One run of a comparison."""

    summary: Summary
    records: Sequence[RoundRecord]


def row(figures: Mapping[str, Any]) -> tuple[str, ...]:
    """Return figures as texts under `HEADINGS`; empty where there is none."""
    values = ((figures[name], form) for name, form in COLUMNS.values())
    return tuple("" if value is None else format(value, form) for value, form in values)


def cells(summary: Summary) -> tuple[str, ...]:
    """Return a run as a row under `HEADINGS`."""
    return row(dataclasses.asdict(summary))


def markdown(title: str, about: str, runs: Sequence[Compared]) -> str:
    """Return the table as a document of its own."""
    rows = [HEADINGS, ("---",) * len(HEADINGS), *(cells(run.summary) for run in runs)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"# {title}\n\n{fill(about, 100)}\n\n{table}\n"
