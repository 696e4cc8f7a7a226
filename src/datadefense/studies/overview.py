"""The overview: what each defense let in wherever the attack works undefended."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from datadefense.studies.own_studies import RARE
from datadefense.studies.store import Result
from datadefense.studies.studies import STUDIES
from datadefense.studies.study import Cell, cells

WORKS = 10.0
"""Excess success rate, in percent, from which on an attack counts as working undefended."""
LOST = 3.0
"""Points of accuracy below fedavg in peace from which on a model counts as damaged."""
WORDS = {
    "digits-edge": "digits",
    "cifar10-label-flip": "CIFAR-10, label flip",
    "cifar10-southwest": "CIFAR-10, Southwest",
    "cifar10-trigger": "CIFAR-10, trigger",
    "cifar100-trigger": "CIFAR-100, trigger",
    "emnist-ardis": "MNIST, UCI sevens",
    "sentiment-yl": "tweets",
    "pgd": "quiet",
    "pgd-replacement": "loud",
}
"""Setups and attacks as a newcomer would call them."""
OWN = "datadefense-learned"
"""The one of ours that has been run in every case; the default has been in some."""
COLUMNS = ("fedavg", "krum", "multi-krum", "median", "rfa", "fltrust", "datadefense", OWN)
"""Defenses of the short table: no defense, statistics, trust in clean data, ours."""

Case = tuple[str, str, str]
"""Setup, attack, and when it attacks: labels of the study `targets` without the defense."""


@dataclass(frozen=True, slots=True)
class Overview:
    """Cells of the study `targets`, by case and defense, of the cases in which the attack works.

    All of seed 0, so that what stands side by side met the same clients, schedule and attackers.
    ``own`` has all seeds of `OWN`.
    """

    cases: Mapping[Case, Mapping[str, Cell]]
    own: Mapping[Case, Cell]

    def defenses(self) -> list[str]:
        """Return the defenses that have results, `OWN` last."""
        found = dict.fromkeys(name for row in self.cases.values() for name in row)
        return [*(name for name in found if name != OWN), OWN]


def overview(results: Mapping[str, Result], scale: str = "cpu") -> Overview:
    """Return the results of all cases whose attack gets through undefended."""
    cases: dict[Case, dict[str, Cell]] = {}
    own: dict[Case, Cell] = {}
    for cell in cells(STUDIES["targets"], scale, results):
        setup, attack, when, defense = cell.point.labels
        first = tuple(pair for pair in cell.runs if pair[0].summary.seed == 0)
        if attack in ("pgd", "pgd-replacement") and first:
            cases.setdefault((setup, attack, when), {})[defense] = Cell(cell.point, first)
            if defense == OWN:
                own[setup, attack, when] = cell
    return Overview({case: row for case, row in cases.items() if _works(row)}, own)


def _works(row: Mapping[str, Cell]) -> bool:
    return "fedavg" in row and excess(row["fedavg"]) >= WORKS


def excess(cell: Cell) -> float:
    """Return the mean excess success rate over the cell's seeds, in percent."""
    return fmean(cell.values("excess_asr_percent"))


def lost(cell: Cell) -> float:
    """Return the mean loss of accuracy beside fedavg in peace, in points; 0 where unknown."""
    costs = cell.cost_in_accuracy()
    return max(0.0, -fmean(costs)) if costs else 0.0


def in_words(case: Case) -> str:
    """Return a case as a reader would say it.

    >>> in_words(("cifar10-trigger", "pgd-replacement", "every fifth round"))
    'CIFAR-10, trigger, loud'
    >>> in_words(("digits-edge", "pgd", "40 % of clients"))
    'digits, quiet, 40 % of clients'
    """
    setup, attack, when = case
    return ", ".join([WORDS[setup], WORDS[attack], *([] if when == RARE else [when])])


def figure_of(cell: Cell) -> str:
    """Return the excess, at least 0, and the accuracy lost where the model is damaged."""
    words = f"{max(0.0, excess(cell)):.1f}"
    return f"{words} (-{lost(cell):.0f})" if lost(cell) >= LOST else words


def short_table(found: Overview) -> str:
    """Return a line a case, in markdown."""
    heads = ["attack", *COLUMNS[:-1], f"**{OWN}**", "its worst seed"]
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    for case, row in found.cases.items():
        figures = [figure_of(row[name]) if name in row else "" for name in COLUMNS]
        parts = [in_words(case), *figures[:-1], f"**{figures[-1]}**", _worst(found.own.get(case))]
        lines.append(f"| {' | '.join(parts)} |")
    return "\n".join(lines) + "\n"


def _worst(own: Cell | None) -> str:
    """Return the highest excess of any seed, and of how many."""
    if own is None:
        return ""
    return f"{max(0.0, *own.values('excess_asr_percent')):.1f} of {len(own.runs)}"


def overview_page(found: Overview, picture: str) -> str:
    """Return the page: what the numbers are, the picture of all defenses, the short table."""
    return "\n".join(
        [
            "# overview: what gets in",
            "",
            "Attack success above the floor (0 if below), in percent, mean over the last ten",
            "evaluated rounds, seed 0, wherever the attack gets "
            f"{WORKS:g} % or more in undefended;",
            "in brackets the points of accuracy lost beside fedavg in peace, "
            f"from {LOST:g} on. The",
            "attacker comes every fifth round unless the case says otherwise. The last column has",
            f"the highest figure of any seed of {OWN}, and how many there are; the default,",
            "datadefense, has been run in some of them ([README](../../README.md)). Statistics",
            "expect one attacker in a round; [told](told.md) has them with more.",
            "[targets](targets.md) has all figures, also after the last round. Made by",
            "`datadefense reproduce all --render-only` from `results/runs.jsonl`.",
            "",
            f"![what each defense lets in]({picture})",
            "",
            short_table(found),
        ]
    )
