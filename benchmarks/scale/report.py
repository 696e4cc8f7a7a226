"""The page of the benchmark: the large round, all that was measured, constants, and days."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.defense_cost.scene import FULL, LENET
from benchmarks.scale.fit import Cost, Formula, Formulas, exchanges

MOST_RESIDENT = 3e9
"""Bytes under which the large round has to stay."""
LARGE = 200
PARAMS: Mapping[str, int] = {LENET: 431_080, FULL: 9_225_610}
CLIENTS_A_ROUND, EXAMPLES = 100, 100
A_DAY = (10_000, 100_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class Day:
    """What so many clients a day send, and hours of one core, updates in memory."""

    model: str
    clients: int
    bytes_received: int
    hours: Mapping[str, float]


def days(formulas: Formulas) -> list[Day]:
    """Return days of rounds of 100 clients with 100 examples in D_d, by the formulas."""
    return [
        Day(
            model,
            clients,
            clients * params * 4,
            {
                rule: formulas.seconds(
                    f"{rule}, {model}" if rule == "datadefense" else rule,
                    False,
                    CLIENTS_A_ROUND,
                    params,
                    EXAMPLES,
                )
                * (clients / CLIENTS_A_ROUND / 3600)
                for rule in ("gate", *_RULES)
            },
        )
        for model, params in PARAMS.items()
        for clients in A_DAY
    ]


def markdown(
    environment: Mapping[str, Any],
    others_share: float | None,
    costs: Sequence[Cost],
    formulas: Formulas,
) -> str:
    """Return the page."""
    meanwhile = "an unknown share" if others_share is None else f"{others_share:.0%}"
    large = [cost for cost in costs if cost.clients == LARGE and cost.model == FULL]
    return "\n".join(
        [
            "# What a defended round costs, by its size",
            "",
            *(f"- {key}: {value}" for key, value in environment.items()),
            "",
            "Seconds of one thread: on the clock, which others and the disk have a part in, and of "
            "the CPU; the least of up to three calls where one takes under a second. Resident "
            "memory is the peak of the whole process (VmHWM), pages of files included; "
            "of a round in memory, that of the call. Other processes took "
            f"{meanwhile} of the cores.",
            "",
            *_the_large_round(large),
            "## All sizes",
            "",
            "The same bits: whether the model is the one that the same round in memory gives.",
            "",
            *_table(
                (
                    "model",
                    "clients",
                    "examples",
                    "updates",
                    "defense",
                    "MB received",
                    *_TIMES,
                    "resident MB before",
                    "at the peak",
                    "the same bits",
                ),
                (_row(cost, costs) for cost in costs),
            ),
            "## Formulas",
            "",
            "n clients, P parameters, E = |D_d| examples, K(n) minima and maxima of a median: "
            + ", ".join(f"K({n}) = {exchanges(n):,}" for n in (10, 100, 200, 1000))
            + ". CPU time; least squares of the relative errors, the last column is the greatest.",
            "",
            *_table(
                ("what", "updates", "nanoseconds", "off by at most"),
                (
                    (
                        one.rule,
                        "file" if one.in_file else "memory",
                        _sum_of(one),
                        f"{one.worst:.0%}",
                    )
                    for one in formulas.all()
                ),
            ),
            "## A day",
            "",
            f"By these formulas, in rounds of {CLIENTS_A_ROUND} clients held in memory, "
            f"{EXAMPLES} examples: hours of one core.",
            "",
            *_table(
                ("model", "clients a day", "TB", "MB/s", "gate", *_RULES),
                (
                    (
                        day.model,
                        f"{day.clients:,}",
                        f"{day.bytes_received / 1e12:.3g}",
                        f"{day.bytes_received / 1e6 / 86_400:.3g}",
                        *(f"{day.hours[name]:.3g}" for name in ("gate", *_RULES)),
                    )
                    for day in days(formulas)
                ),
            ),
        ]
    )


_RULES = ("fedavg", "median", "krum", "datadefense")
_TIMES = ("gate clock s", "CPU s", "defense clock s", "CPU s")


def _seconds(cost: Cost) -> tuple[float, ...]:
    return cost.intake_clock, cost.intake_cpu, cost.clock, cost.cpu


def _sum_of(formula: Formula) -> str:
    parts = [f"{1e9 * constant:.3g} {times}" for times, constant in formula.seconds.items()]
    return " + ".join([*parts, formula.base] if formula.base else parts)


def _the_large_round(large: Sequence[Cost]) -> list[str]:
    if not large:
        return []
    return [
        f"## {LARGE} clients, VGG-9, in a file",
        "",
        f"{large[0].bytes_received / 1e9:.2f} GB of updates, limit {MOST_RESIDENT / 1e9:g} GB of "
        "resident memory.",
        "",
        *_table(
            ("defense", "examples", *_TIMES, "peak resident MB", "under the limit"),
            (
                (
                    cost.defense,
                    f"{cost.examples or ''}",
                    *(f"{seconds:.1f}" for seconds in _seconds(cost)),
                    f"{cost.resident_peak / 1e6:.0f}",
                    "yes" if cost.resident_peak < MOST_RESIDENT else "**no**",
                )
                for cost in large
            ),
        ),
    ]


def _row(cost: Cost, costs: Sequence[Cost]) -> tuple[str, ...]:
    return (
        cost.model,
        f"{cost.clients}",
        f"{cost.examples or ''}",
        "file" if cost.in_file else "memory",
        cost.defense,
        f"{cost.bytes_received / 1e6:.0f}",
        *(f"{seconds:.3g}" for seconds in _seconds(cost)),
        f"{cost.resident_before / 1e6:.0f}",
        f"{cost.resident_peak / 1e6:.0f}",
        _same_bits(cost, costs),
    )


def _same_bits(cost: Cost, costs: Sequence[Cost]) -> str:
    def size(one: Cost) -> tuple[object, ...]:
        return one.model, one.clients, one.examples, one.defense

    twins = [one for one in costs if not one.in_file and size(one) == size(cost)]
    if not cost.in_file or not twins:
        return ""
    return "yes" if all(one.result == cost.result for one in twins) else "**no**"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return [*(f"| {' | '.join(line)} |" for line in lines), ""]
