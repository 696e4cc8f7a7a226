"""The headline: what gets in, attack by attack, for the README's first screen."""

from collections.abc import Mapping
from statistics import fmean

from datadefense.studies.store import Result
from datadefense.studies.studies import STUDIES
from datadefense.studies.study import Cell, cells

COLUMNS = ("fedavg", "multi-krum", "median", "fltrust", "datadefense-learned", "datadefense")
"""No defense, two statistics, trust in clean data, the former default, the default."""
CASES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "10 % of clients, a fifth of their data": ("poisoners", ("digits-edge", "10 %", "20 %")),
    "20 % of clients, a tenth": ("poisoners", ("digits-edge", "20 %", "10 %")),
    "20 % of clients, a fifth": ("poisoners", ("digits-edge", "20 %", "20 %")),
    "20 % of clients, a half": ("poisoners", ("digits-edge", "20 %", "50 %")),
    "40 % of clients, a fifth": ("poisoners", ("digits-edge", "40 %", "20 %")),
    "CIFAR-10 trigger, 20 %, a fifth (45 rounds)": (
        "poisoners",
        ("cifar10-trigger", "20 %", "20 %"),
    ),
    "CIFAR-10 Southwest, 20 %, a fifth (45 rounds)": (
        "poisoners",
        ("cifar10-southwest", "20 %", "20 %"),
    ),
    "20 %, patient attackers: drip (200 rounds)": (
        "drip",
        ("20 %", "faults", "0.4", "1.5"),
    ),
    "40 %, patient attackers: drip (200 rounds)": (
        "drip",
        ("40 %", "faults", "0.4", "1.5"),
    ),
    "20 %, scaled (30 rounds)": (
        "targets",
        ("digits-edge", "pgd-replacement", "20 % of clients"),
    ),
    "one every fifth round, scaled (30 rounds)": (
        "targets",
        ("digits-edge", "pgd-replacement", "every fifth round"),
    ),
}
"""Rows by their words: the study, and the labels before the defense."""


def headline(results: Mapping[str, Result]) -> str:
    """Return the table in markdown: mean increase of the success rate; the default's worst seed."""
    found = {
        (name, cell.point.labels): cell
        for name in dict.fromkeys(study for study, _ in CASES.values())
        for cell in cells(STUDIES[name], "cpu", results)
        if cell.runs
    }
    heads = ["attackers", *COLUMNS[:-1], "**datadefense**", "worst seed", "its accuracy"]
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    for words, (name, labels) in CASES.items():
        row = [found.get((name, (*labels, defense))) for defense in COLUMNS]
        own = row[-1]
        if own is None:
            continue
        figures = [_increase(cell) for cell in row]
        figures[-1] = f"**{figures[-1]}**"
        lines.append(f"| {' | '.join([words, *figures, _worst(own), _accuracy(own)])} |")
    return "\n".join(lines) + "\n"


def _increase(cell: Cell | None) -> str:
    return "" if cell is None else f"{max(0.0, fmean(cell.values('excess_asr_percent'))):.1f}"


def _worst(cell: Cell) -> str:
    """Return the highest increase of any seed, and of how many."""
    return f"{max(0.0, *cell.values('excess_asr_percent')):.1f} of {len(cell.runs)}"


def _accuracy(cell: Cell) -> str:
    """Return the accuracy beside fedavg's without an attack, in points."""
    costs = cell.cost_in_accuracy()
    return f"{fmean(costs):+.1f}" if costs else ""
