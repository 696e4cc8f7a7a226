"""What goes into the page, as plain values that JSON can hold."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from datadefense.core.foreign import sanitize
from datadefense.report.client_data import client_data
from datadefense.report.conclusion import outcome, overall, verdict
from datadefense.report.detector_data import detector_data
from datadefense.report.packing import rounded
from datadefense.report.reader import StoredRun
from datadefense.runs.tables import HEADINGS, row
from datadefense.simulation.rounds import RoundRecord
from datadefense.simulation.scores import SCORES, Score

MOST_PLACES, MOST_GAMMA = 60_000, 1_000_000
"""Clients times rounds, and examples times rounds, that a page can hold of all its runs."""
MOST_EVENTS = 200
DISTINGUISHING = ("task", "attack", "scale", "seed", "federation.rounds")
"""Choices that a run's label names where runs differ in them."""
IN_FIGURES = {"task": "setup", "federation.rounds": "rounds"}
"""What a summary calls choices that it has under another name."""
EVENTS = ("held", "fallback", "restarted", "dead")
"""Texts in a round's report that say that something out of the ordinary happened."""


def page_data(runs: Sequence[StoredRun]) -> dict[str, Any]:
    """Return all that the page shows."""
    pictures: list[str] = []
    names = labels(runs)
    return {
        "headings": list(HEADINGS),
        "scores": [_score(score) for score in reversed(SCORES)],
        "overall": overall(names, [outcome(run.figures) for run in runs]),
        "runs": [
            _run(run, name, len(runs), pictures) for run, name in zip(runs, names, strict=True)
        ],
        "pictures": pictures,
    }


def _score(score: Score) -> dict[str, Any]:
    """Return what a chart of a score has to know."""
    return {
        "name": score.name,
        "id": score.label.lower(),
        "title": score.title,
        "unit": score.unit,
        "range": list(score.range),
        "floor": score.floor,
    }


def labels(runs: Sequence[StoredRun]) -> list[str]:
    """Return a name for each run: its defense, what it differs in, its folder if need be."""
    different = [key for key in DISTINGUISHING if len({str(_choice(run, key)) for run in runs}) > 1]
    found = [
        ", ".join(
            [
                str(_choice(run, "defense")),
                *(_named(key, _choice(run, key)) for key in different),
            ]
        )
        for run in runs
    ]
    for attempt in ("folder", "number"):
        times = Counter(found)
        found = [
            f"{label} ({run.name if attempt == 'folder' else place})" if times[label] > 1 else label
            for place, (label, run) in enumerate(zip(found, runs, strict=True), 1)
        ]
    return [sanitize(label) for label in found]


def title_of(runs: Sequence[StoredRun]) -> str:
    """Return what the page is about: task, attack and defenses, as far as the runs share them."""
    tasks = {str(_choice(run, "task")) for run in runs}
    attacks = {str(_choice(run, "attack")) for run in runs}
    defenses = dict.fromkeys(str(_choice(run, "defense")) for run in runs)
    task = tasks.pop() if len(tasks) == 1 else "Several tasks"
    attack = attacks.pop() if len(attacks) == 1 else "several attacks"
    attack = "nobody attacks" if attack == "none" else f"{attack} against"
    return sanitize(f"{task}: {attack} {', '.join(defenses)}")


def _run(run: StoredRun, label: str, runs: int, pictures: list[str]) -> dict[str, Any]:
    records = run.records
    return {
        "label": label,
        "outcome": outcome(run.figures),
        "verdict": verdict(run.figures),
        "notes": list(run.notes),
        "cells": _cells(run, label),
        "figures": run.figures,
        "config": run.config,
        "rounds": [record.round for record in records],
        "attacked": [record.round for record in records if record.attackers],
        "scores": {
            score.name: rounded(record.scores.get(score.name) for record in records)
            for score in SCORES
        },
        "seconds": {
            part: rounded(record.seconds.get(part) for record in records)
            for part in ("training", "attack", "defense", "evaluation")
        },
        "theta": theta(records),
        "events": events(records)[:MOST_EVENTS],
        "clients": client_data(records, MOST_PLACES // runs),
        "detector": detector_data(records, run.gallery, MOST_GAMMA // runs, pictures),
    }


def _cells(run: StoredRun, label: str) -> list[str]:
    if run.figures is None:
        return [label, *[""] * (len(HEADINGS) - 1)]
    return [label, *row(run.figures)[1:]]


def theta(records: Sequence[RoundRecord]) -> dict[str, list[float | None]]:
    """Return how much each piece of evidence counted by round, where a defense learns that."""
    names = dict.fromkeys(name for record in records for name in record.theta)
    return {name: rounded(record.theta.get(name) for record in records) for name in names}


def events(records: Sequence[RoundRecord]) -> list[tuple[int, str]]:
    """Return what was out of the ordinary, as pairs of round and text."""
    return [
        (record.round, sanitize(str(record.report[name])))
        for record in records
        for name in EVENTS
        if record.report.get(name)
    ]


def _choice(run: StoredRun, key: str) -> Any:
    figures = run.figures or {}
    return run.choices.get(key, figures.get(IN_FIGURES.get(key, key), "unknown"))


def _named(key: str, value: object) -> str:
    return (
        f"{key} {value}"
        if key in ("seed", "scale")
        else f"{value} rounds"
        if key == "federation.rounds"
        else str(value)
    )
