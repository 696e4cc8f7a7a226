"""Figures of a study, drawn from its cells: curves by round, and bars beside the paper's."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from datadefense.runs.tables import COLOURS
from datadefense.schedules.base import participants
from datadefense.simulation.scores import SCORES
from datadefense.studies.paper import published
from datadefense.studies.study import Cell, Study

LINES = ("-", "--", "-.", ":")
RATES = tuple((score.name, score.label, score.unit) for score in SCORES)
"""Curves of the rows that each figure by round has: their name, title and unit."""
WEIGHT = ("gap_mean", "attacker's weight less honest", "mean over honest clients")


def draw(study: Study, cells: Sequence[Cell], path: Path) -> bool:
    """Draw the study's figure into a PNG file; say whether there was anything to draw."""
    if study.needs_curves:
        cells = [cell for cell in cells if any(result.curves for result, _ in cell.runs)]
    if not study.figure or not cells:
        return False
    if study.figure == "bars":
        paper = published(study.name)
        figure = _bars(cells, {} if paper is None else paper.figures)
    else:
        figure = BY_ROUND[study.figure](cells)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    return True


def _values(cell: Cell, name: str) -> dict[float, list[float]]:
    """Return a curve's values, one of each seed that has it, by round."""
    found: dict[float, list[float]] = {}
    for result, _ in cell.runs:
        for index, value in result.curves.get(name, ()):
            found.setdefault(index, []).append(value)
    return {index: found[index] for index in sorted(found)}


def _curve(cell: Cell, name: str) -> tuple[list[float], list[float]]:
    """Return a curve's mean over the seeds that have it, round by round."""
    found = _values(cell, name)
    return list(found), [fmean(values) for values in found.values()]


def _mark_attacks(panel: Axes, cell: Cell) -> None:
    """Put a triangle on the axis for each round in which the cell's attackers come."""
    experiment = cell.point.experiment
    federation, schedule = experiment.federation, experiment.schedule
    places = (federation.clients, federation.clients_per_round, experiment.seed)
    attacked = [
        index
        for index in range(1, experiment.rounds + 1)
        if any(person.is_malicious for person in participants(schedule, index, *places))
    ]
    axis = panel.get_xaxis_transform()
    panel.plot(attacked, [0.015] * len(attacked), "^", color="0.35", markersize=4, transform=axis)


def _finish(panel: Axes, title: str, unit: str) -> None:
    panel.set_title(title, fontsize=10, loc="left")
    panel.set_xlabel("round")
    panel.set_ylabel(unit)
    panel.grid(alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)


def _line(panel: Axes, place: int, cell: Cell, name: str, label: str) -> None:
    """Draw a cell's curve, shaded from the lowest seed to the highest, in its place's colour."""
    colour = COLOURS[place % len(COLOURS)]
    line = LINES[place % len(LINES)]
    panel.plot(*_curve(cell, name), label=label, color=colour, linestyle=line)
    found = _values(cell, name)
    low, high = map(min, found.values()), map(max, found.values())
    panel.fill_between(list(found), list(low), list(high), color=colour, alpha=0.15, linewidth=0)


def _by_round(cells: Sequence[Cell], *further: tuple[str, str, str]) -> Figure:
    """Accuracy, success rate and what else by round, a panel each for what the first label says."""
    rows = (*RATES, *further)
    groups = list(dict.fromkeys(cell.point.labels[0] for cell in cells))
    figure = Figure(figsize=(5 * len(groups), 3 * len(rows)), layout="constrained")
    panels = figure.subplots(len(rows), len(groups), squeeze=False, sharey="row")
    for column, group in enumerate(groups):
        inside = [cell for cell in cells if cell.point.labels[0] == group]
        for row, (name, words, unit) in enumerate(rows):
            panel = panels[row][column]
            for place, cell in enumerate(inside):
                _line(panel, place, cell, name, " ".join(cell.point.labels[1:]) or group)
            _mark_attacks(panel, inside[0])
            _finish(panel, f"{words}, {group}", unit)
        panels[1][column].set_ylim(-3, 103)
        panels[1][column].legend(fontsize=8, frameon=False)
    return figure


def _hits(cells: Sequence[Cell]) -> Figure:
    """Share of the poisoned examples that the detector marked, by round."""
    figure = Figure(figsize=(6, 3.4), layout="constrained")
    panel = figure.subplots()
    for place, cell in enumerate(cells):
        _line(panel, place, cell, "hits_percent", " ".join(cell.point.labels))
    _finish(panel, "poisoned examples that the detector marked", "%")
    panel.set_ylim(-3, 103)
    panel.legend(fontsize=8, frameon=False)
    return figure


def _gaps(cells: Sequence[Cell]) -> Figure:
    """Attackers' weight less that of honest clients: least, mean and greatest, by round."""
    across = min(2, len(cells))
    down = math.ceil(len(cells) / across)
    figure = Figure(figsize=(5 * across, 3.4 * down), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False, sharey=True)
    for panel in panels.flat[len(cells) :]:
        panel.remove()
    for panel, cell in zip(panels.flat, cells, strict=False):
        for name, words, style in (
            ("gap_max", "greatest", "v"),
            ("gap_mean", "mean", "o"),
            ("gap_min", "least", "^"),
        ):
            panel.plot(*_curve(cell, name), style, label=words, markersize=4, linestyle=":")
        panel.axhline(0, color="0.6", linewidth=0.8)
        _finish(panel, " ".join(cell.point.labels), "attacker's weight less honest")
        panel.legend(fontsize=8, frameon=False)
    return figure


def _bars(cells: Sequence[Cell], known: Mapping[tuple[str, ...], tuple[float, float]]) -> Figure:
    """Success rates, a panel a setup, seeds' range, the floor dotted, the paper's as dots."""
    setups = list(dict.fromkeys(cell.point.labels[0] for cell in cells))
    figure = Figure(figsize=(2.2 * len(setups) + 1.5, 4.6), layout="constrained")
    panels = figure.subplots(1, len(setups), sharey=True, squeeze=False)
    names = list(dict.fromkeys(cell.point.labels[1] for cell in cells))[::-1]
    for panel, setup in zip(panels[0], setups, strict=True):
        for cell in cells:
            if cell.point.labels[0] != setup:
                continue
            line = names.index(cell.point.labels[1])
            rates = cell.values("asr_percent")
            own = cell.point.labels[1].startswith("datadefense")
            panel.barh(line, max(fmean(rates), 0.4), color=COLOURS[1] if own else "#b9c3cf")
            panel.plot([min(rates), max(rates)], [line, line], color="0.2", linewidth=1.2)
            if cell.point.labels in known:
                panel.plot(known[cell.point.labels][1], line, "o", color=COLOURS[0], markersize=4)
            floor = fmean(cell.values("asr_floor_percent"))
            panel.axvline(floor, color="0.5", linewidth=0.7, linestyle=":")
        panel.set_xlim(0, 104)
        panel.set_title(setup, fontsize=9)
        panel.set_yticks(range(len(names)), names, fontsize=8)
        panel.spines[["top", "right"]].set_visible(False)
    words = "ASR %; dots: the paper's; dotted: floor; black: from the lowest seed to the highest"
    panels[0][0].set_xlabel(words, fontsize=8, loc="left")
    return figure


BY_ROUND: Mapping[str, Callable[[Sequence[Cell]], Figure]] = {
    "by-round": _by_round,
    "by-round-and-weight": lambda cells: _by_round(cells, WEIGHT),
    "hits": _hits,
    "gaps": _gaps,
}
"""Kinds of figures that show curves, by name."""
