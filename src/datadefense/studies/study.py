"""A study: a named grid of experiments and the table that its results make."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from datadefense.runs.config import Experiment
from datadefense.runs.configure import configure
from datadefense.studies.paper import Published, published
from datadefense.studies.store import Result

MOST_SEEDS = 20
"""Seeds of a point that a table looks for."""
NEAR = 5.0
"""Points of success rate within which ours and the paper's say the same, scales being different."""
STAND_IN_SAID = "**emnist-ardis here is MNIST with UCI sevens**, not EMNIST with ARDIS."
UNLIKE = "\u2260"
"""Beside a number of the paper's that ours does not agree with."""


@dataclass(frozen=True, slots=True)
class Point:
    """One place of the grid: what it is called on each axis, and its experiment with seed 0."""

    labels: tuple[str, ...]
    experiment: Experiment

    def seeds(self, count: int) -> list[Experiment]:
        """Return the experiment with each of the first seeds."""
        return [replace(self.experiment, seed=seed) for seed in range(count)]


def point_of(
    scale: str, labels: tuple[str, ...], task: str, changes: Mapping[str, str | int]
) -> Point:
    """Return the point of a task with some settings changed."""
    experiment = configure(task, scale, {key: str(value) for key, value in changes.items()})
    return Point(labels, experiment if experiment.attacked else experiment.without_attack())


@dataclass(frozen=True, slots=True)
class Study:
    """What a grid asks, the names of its axes, its points at a scale, and the kind of figure."""

    name: str
    question: str
    axes: tuple[str, ...]
    points: Callable[[str], Iterable[Point]]
    figure: str = ""

    @property
    def needs_curves(self) -> bool:
        """Whether the figure shows rounds, and not only what a run comes to."""
        return self.figure not in ("", "bars")

    def wanted(self, scale: str, seeds: int, only: str = "") -> list[Experiment]:
        """Return the runs to make, first those that others are compared with: no attack, fedavg.

        ``only`` keeps points that have each of its words (between commas) among their labels.
        """
        runs: dict[str, Experiment] = {}
        points = [point for point in self.points(scale) if _has(point, only)]
        attacked = [one for point in points for one in point.seeds(seeds)]
        for one in [*(one.without_attack() for one in attacked), *attacked]:
            runs.setdefault(one.key(), one)
        return list(runs.values())


def _has(point: Point, only: str) -> bool:
    return all(word in point.labels for word in map(str.strip, only.split(",")) if word)


@dataclass(frozen=True, slots=True)
class Cell:
    """The results of a point over its seeds, each with the run without an attack or None."""

    point: Point
    runs: tuple[tuple[Result, Result | None], ...]

    def values(self, figure: str) -> list[float]:
        """Return a figure of each seed; one seed without it: none at all."""
        found = [getattr(result.summary, figure) for result, _ in self.runs]
        return [] if any(value is None for value in found) else [float(v) for v in found]

    def cost_in_accuracy(self) -> list[float]:
        """Return by how much the accuracy differs from fedavg's without an attack, each seed.

        Beside a run's own calm run, on the same machine; the oldest have that of the store.
        """
        costs = []
        for result, stored in self.runs:
            calm = result.summary.calm_ma_percent
            if calm is None and stored is not None:
                calm = stored.summary.ma_percent
            if calm is None:
                return []
            costs.append(result.summary.ma_percent - calm)
        return costs


def cells(study: Study, scale: str, results: Mapping[str, Result]) -> list[Cell]:
    """Return the points that have results, with all of them."""
    found = []
    for point in study.points(scale):
        keys = point.experiment.seed_keys(MOST_SEEDS)
        if not any(key in results for key in keys):
            continue
        calm = point.experiment.without_attack().seed_keys(MOST_SEEDS)
        pairs = zip(keys, calm, strict=True)
        runs = tuple((results[key], results.get(peace)) for key, peace in pairs if key in results)
        found.append(Cell(point, runs))
    return found


def spread(values: list[float], digits: int = 1) -> str:
    """Return the mean and, of several, the standard deviation.

    >>> spread([1.0, 3.0]), spread([2.0]), spread([])
    ('2.0 ± 1.4', '2.0', '')
    """
    if not values:
        return ""
    deviation = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{fmean(values):.{digits}f}{deviation}"


def differs(ours: list[float], theirs: float) -> bool:
    """Say whether the paper's success rate is further from ours than `NEAR` and the spread.

    >>> differs([1.0], 5.0), differs([1.0], 9.0)
    (False, True)
    >>> differs([1.0, 9.0], 15.0), differs([1.0, 9.0], 17.0)
    (False, True)
    """
    if not ours:
        return False
    deviation = stdev(ours) if len(ours) > 1 else 0.0
    return abs(fmean(ours) - theirs) > max(NEAR, 2 * deviation)


def table(study: Study, scale: str, results: Mapping[str, Result]) -> str:
    """Return the study's results as a markdown table, a line a point."""
    heads = [
        *study.axes,
        "seeds",
        "MA %",
        "dMA",
        "ASR %",
        "floor %",
        "excess %",
        "worst %",
        "final ASR %",
        "attacker's weight",
        "honest excluded %",
        "detector hits %",
    ]
    paper = published(study.name)
    numbers = {} if paper is None else paper.figures
    if numbers:
        heads += ["paper's MA %", "paper's ASR %"]
    shown = list(cells(study, scale, results))
    searched = any(cell.values("evasion_budget") for cell in shown)
    if searched:
        heads.append("evasion budget")
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for cell in shown:
        excess = cell.values("excess_asr_percent")
        row = [
            *cell.point.labels,
            str(len(cell.runs)),
            spread(cell.values("ma_percent")),
            spread(cell.cost_in_accuracy()),
            spread(cell.values("asr_percent")),
            spread(cell.values("asr_floor_percent")),
            spread(excess),
            f"{max(excess):.1f}",
            spread(cell.values("final_asr_percent")),
            spread(cell.values("attacker_weight_mean"), 3),
            spread(cell.values("honest_excluded_percent")),
            spread(cell.values("detector_hits_percent")),
        ]
        if numbers:
            row += _beside(cell, numbers.get(cell.point.labels))
        if searched:
            row.append(spread(cell.values("evasion_budget"), 3))
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def _beside(cell: Cell, known: tuple[float, float] | None) -> list[str]:
    """Return the paper's accuracy and success rate, the latter marked where ours differs."""
    if known is None:
        return ["", ""]
    accuracy, rate = known
    mark = f" {UNLIKE}" if differs(cell.values("asr_percent"), rate) else ""
    return [f"{accuracy:.2f}", f"{rate:.2f}{mark}"]


def _of_paper(paper: Published | None) -> list[str]:
    """Return what stands beside ours: the paper's numbers, or its words on a picture."""
    if paper is None:
        return []
    if paper.says:
        return ["", f"**The paper** ({paper.source}): {paper.says}"]
    return [
        f"Beside it the paper's {paper.source}, at its own scale; {UNLIKE}: more than",
        f"{NEAR:g} points and two standard deviations from our success rate.",
    ]


def uses_stand_in(experiment: Experiment) -> bool:
    """Say whether a task's own digits gave way to those that everybody has."""
    return getattr(experiment.task, "dataset", "") == "mnist"


def page(
    study: Study,
    scale: str,
    results: Mapping[str, Result],
    picture: str = "",
    remarks: str = "",
) -> str:
    """Return the study's page: question, how it was answered, picture, remarks, table."""
    replaced = any(uses_stand_in(point.experiment) for point in study.points(scale))
    command = f"`datadefense reproduce {study.name} --scale {scale}`"
    return "\n".join(
        [
            f"# {study.name}: {study.question}",
            "",
            f"Scale: {scale}. Mean ± standard deviation over seeds of means over the last 10",
            "evaluated rounds, which at cpu scale are all that are evaluated of CIFAR, tweets and",
            "MNIST (every third or fifth round). Final: after the last round. Floor: success rate",
            "of fedavg when nobody attacks, same seed; excess: what is above it; worst: of any",
            "seed. dMA: accuracy less that of fedavg without an attack, same seed. Attackers,",
            "defense set and test share no poisoned example.",
            *([STAND_IN_SAID] if replaced else []),
            f"Made by {command} from `results/runs.jsonl`.",
            *_of_paper(published(study.name)),
            "",
            *([f"![{study.question}]({picture})", ""] if picture else []),
            *([remarks.strip(), ""] if remarks.strip() else []),
            table(study, scale, results),
        ]
    )
