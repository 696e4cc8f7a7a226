"""The result of the aggregation benchmark: figures, targets and tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SMALL, LARGE = 431_080, 9_225_610
"""Parameters of LeNet and of VGG-9."""
FASTER: Mapping[str, Mapping[tuple[int, int], float]] = {
    "median": {(10, SMALL): 5, (100, SMALL): 3, (10, LARGE): 5},
    "trimmed-mean": {(10, SMALL): 5, (100, SMALL): 3, (10, LARGE): 5},
    "krum": {(10, SMALL): 5, (100, SMALL): 5, (10, LARGE): 4},
    "multi-krum": {(10, SMALL): 5, (100, SMALL): 5, (10, LARGE): 4},
    "bulyan": {(10, SMALL): 10, (100, SMALL): 10, (10, LARGE): 6},
}
"""How many times faster than Flower's a rule should be, by (clients, dim)."""
WEIGHTED_MEANS = ("fedavg", "ndc", "ndc-adaptive")
"""Rules held to the speed of ``weights @ updates``; weak-dp also draws a random number each."""
MOST_PER_PASS = 1.3
MOST_MEMORY = 0.5


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule in one case; None where there is nothing to compare or it was not measured."""

    rule: str
    passes: int
    ours_ms: float
    flower_ms: float | None
    flower_best_ms: float | None
    flower_without_gc_ms: float | None
    torch_ms: float | None
    difference: float | None
    difference_same_choice: float | None
    apart_same_choice: int | None
    extra_memory: float | None


@dataclass(frozen=True, slots=True)
class CaseResult:
    """All rules in one case, with what they are measured against."""

    clients: int
    dim: int
    sum_ms: float
    weighted_sum_ms: float
    gate_ms: float
    others_share: float | None
    rules: tuple[RuleResult, ...]
    samples_ms: Mapping[str, Sequence[float]]

    @property
    def title(self) -> str:
        """The case in words."""
        return f"{self.clients} clients, {self.dim:,} parameters"


@dataclass(frozen=True, slots=True)
class Target:
    """What was asked for, what came out, and whether that is enough."""

    target: str
    measured: float | None
    met: bool


def targets(cases: Sequence[CaseResult]) -> list[Target]:
    """Hold the results to the targets, as far as they were measured."""
    return [target for case in cases for rule in case.rules for target in _targets(case, rule)]


def _targets(case: CaseResult, rule: RuleResult) -> Iterator[Target]:
    where = f"{rule.rule}, {case.title}"
    if rule.rule in WEIGHTED_MEANS:
        measured = rule.ours_ms / (rule.passes * case.weighted_sum_ms)
        text = f"{where}: <= {MOST_PER_PASS} x {rule.passes} x `weights @ updates`"
        yield Target(text, measured, measured <= MOST_PER_PASS)
    least = FASTER.get(rule.rule, {}).get((case.clients, case.dim))
    if least and rule.flower_ms:
        measured = rule.flower_ms / rule.ours_ms
        yield Target(f"{where}: >= {least:g} x faster than Flower's", measured, measured >= least)
    if case.dim == LARGE:
        extra = rule.extra_memory
        text = f"{where}: extra memory <= {MOST_MEMORY} of the matrix"
        yield Target(text, extra, extra is not None and extra <= MOST_MEMORY)


def markdown(
    environment: Mapping[str, Any], cases: Sequence[CaseResult], reached: Sequence[Target]
) -> str:
    """Render everything as one page."""
    lines = ["# Aggregation", "", *(f"- {key}: {value}" for key, value in environment.items()), ""]
    lines += [line for case in cases for line in _case_lines(case)]
    lines += ["## Targets", "", "| target | measured | met |", "|---|---|---|"]
    lines += [
        f"| {target.target} | {_figure(target.measured)} | {'yes' if target.met else '**no**'} |"
        for target in reached
    ]
    return "\n".join([*lines, "", "## Notes", "", *(f"- {note}" for note in NOTES), ""])


def _case_lines(case: CaseResult) -> list[str]:
    head = (
        "rule",
        "ours ms",
        "Flower ms",
        "Flower / ours",
        "Flower's best / ours",
        "Flower / (ours + gate)",
        "plain torch ms",
        "ours / `sum(0)`",
        "extra memory",
        "largest difference from Flower",
    )
    rows = [
        (
            rule.rule,
            _figure(rule.ours_ms),
            _figure(rule.flower_ms),
            _figure(rule.flower_ms and rule.flower_ms / rule.ours_ms),
            _figure(rule.flower_best_ms and rule.flower_best_ms / rule.ours_ms),
            _figure(rule.flower_ms and rule.flower_ms / (rule.ours_ms + case.gate_ms)),
            _figure(rule.torch_ms),
            _figure(rule.ours_ms / case.sum_ms),
            _figure(rule.extra_memory),
            "-" if rule.difference is None else f"{rule.difference:.1e}",
        )
        for rule in case.rules
    ]
    bulyan = [
        f"Flower's Bulyan without the cost of its garbage collections: "
        f"{_figure(rule.flower_without_gc_ms)} ms; given our choice of clients it is more than "
        f"1e-6 away in {rule.apart_same_choice} parameters, at most "
        f"{rule.difference_same_choice:.1e}."
        for rule in case.rules
        if rule.difference_same_choice is not None
    ]
    return [
        f"## {case.title}",
        "",
        f"`updates.sum(0)` {_figure(case.sum_ms)} ms, `weights @ updates` "
        f"{_figure(case.weighted_sum_ms)} ms, our gate on Flower's replies "
        f"{_figure(case.gate_ms)} ms. Other processes took {_percent(case.others_share)} of the "
        "cores meanwhile.",
        *bulyan,
        "",
        *(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)),
        "",
    ]


def _percent(share: float | None) -> str:
    return "an unknown share" if share is None else f"{share:.0%}"


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


NOTES = (
    "Median over all timed calls, after one warm-up each, contenders in turns, in a new order "
    "each time; one that takes less than 50 ms is called up to 10 times in its turn.",
    "Flower's Krum, Multi-Krum and Bulyan copy the matrix several times; on a virtual machine that "
    "gives unused memory back to its host, touching so much anew can double their time. "
    "Flower's best / ours takes Flower's fastest call against our median.",
    "Where other processes took more than a few per cent of the cores, do not trust the times: two "
    "threads that wait for each other in every operation suffer far more than one.",
    "Ours starts from the matrix of updates, Flower's from its replies, which it decodes and does "
    "not check. Our gate decodes and checks the same replies; Flower / (ours + gate) counts both.",
    "Ours and Flower's return the new model, plain torch only the update. Plain `median` takes the "
    "lower of the two in the middle. Plain Krum, Multi-Krum and Bulyan use a float32 Gram matrix, "
    "which can choose other clients at millions of parameters; plain Bulyan scores once. "
    "For NDC and weak DP, plain torch is `weights @ updates` alone.",
    "Bulyan differs from Flower's by design: Flower scores the clients once, we score them again "
    "after each choice. Given our choice, the two differ only where two values are equally near "
    "the median up to the rounding of float32.",
    "Flower's Bulyan calls `gc.collect()` for each chosen client, at a cost that depends on all "
    "that the process has loaded; without it means the same call after `gc.freeze()`.",
    "Multi-Krum weighs the chosen by examples, as Flower's does. With 100 clients the two differ "
    "by one client at the border: ours is the one that float64 chooses "
    "(tests/defenses/test_flower.py).",
    "Weak DP also draws a Gaussian number for each parameter, which costs more than its two "
    "passes; it is not among the rules held to 1.3 times `weights @ updates` per pass.",
    "FLTrust includes the server's own training: one step of SGD with a linear model, a few "
    "operations on vectors as long as the model.",
    "Extra memory is by how much the call raises the peak of resident memory, as a share of the "
    "matrix of updates: scratch, the new model and the new state count; the state carried in does "
    "not (only SparseFed has one, of two vectors).",
)
