"""The figures of the benchmark, its targets, and the page that shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_OF_FLOOR = 1.25
MOST_OF_LEARNED = 1.15
MOST_OF_ROUND: Mapping[int, float] = {500: 0.2, 100: 0.1}
"""Most that a call may add to a round of training, by the size of D_d."""
ROUND_PASSES = 10 * 250 * 2 * 3
"""Forward passes of one image in a round's training, a backward pass taken for two."""
ROUND_RATIOS = ("adds", "counted", "share of the whole")


@dataclass(frozen=True, slots=True)
class Beside:
    """CPU seconds of a call and of what it is held against."""

    model: str
    clients: int
    examples: int
    call: float
    other: float

    @property
    def ratio(self) -> float:
        """Of the call to the other."""
        return self.call / self.other


@dataclass(frozen=True, slots=True)
class Size:
    """Least CPU seconds of a call of one size."""

    clients: int
    examples: int
    seconds: float

    @property
    def each_us(self) -> float:
        """Microseconds for one client and one example."""
        return 1e6 * self.seconds / (self.clients * self.examples)


@dataclass(frozen=True, slots=True)
class Figures:
    """All that was measured; ``others_share`` is what other processes took of the cores."""

    floors: Sequence[Beside]
    rounds: Sequence[Beside]
    by_clients: Sequence[Size]
    by_examples: Sequence[Size]
    learned: Sequence[Beside]
    release: Beside
    others_share: float | None


def targets(figures: Figures) -> list[tuple[str, float, float, bool]]:
    """Return each target in words, its bound, what came out, and whether that is enough."""
    bounds = (
        [
            (f"{one.model}: a call beside its floor", MOST_OF_FLOOR, one.ratio)
            for one in figures.floors
        ]
        + [
            (f"{one.model}: a call beside the learned form's", MOST_OF_LEARNED, one.ratio)
            for one in figures.learned
        ]
        + [
            (
                f"{one.model}, {one.examples} examples: a call beside a round's training",
                MOST_OF_ROUND[one.examples],
                one.ratio,
            )
            for one in figures.rounds
        ]
    )
    return [(text, most, value, value <= most) for text, most, value in bounds]


def markdown(environment: Mapping[str, Any], figures: Figures) -> str:
    """Render the page."""
    share = figures.others_share
    meanwhile = "an unknown share" if share is None else f"{share:.0%}"
    release = figures.release
    return "\n".join(
        [
            "# What a call of DataDefense costs",
            "",
            *(f"- {key}: {value}" for key, value in environment.items()),
            "",
            f"CPU seconds of one thread, least of the turns; other processes took {meanwhile} of "
            "the cores. What is compared was timed in turns, so trust the ratios more than the "
            "seconds.",
            "",
            "## Targets",
            "",
            *_table(
                ("target", "at most", "measured", "met"),
                (
                    (text, f"{most:.2f}", f"{value:.2f}", "yes" if met else "**no**")
                    for text, most, value, met in targets(figures)
                ),
            ),
            "## Beside its floor",
            "",
            "The floor is the bare operations: a forward pass over the surely poisoned fifth of "
            "D_d of each client's model, of the old one and of the new one, and two passes over "
            "the matrix of updates.",
            "",
            *_table(
                ("model", "clients", "examples", "call", "floor", "times the floor"),
                (_row(one, f"{one.ratio:.2f}") for one in figures.floors),
            ),
            "## Beside a round of the paper's size",
            "",
            "Training: 10 clients x 250 images x 2 epochs in batches of 32, without augmentation. "
            "Measured is one client, times 10. Medians. Adds: call / training; counted: the same "
            "in forward passes of one image, a backward pass taken for two. Share of the whole: "
            "call / (call + training).",
            "",
            *_table(
                ("model", "clients", "examples", "call", "training", *ROUND_RATIOS),
                (
                    _row(
                        one,
                        f"{one.ratio:.0%}",
                        f"{(one.clients + 2) * one.examples / 5 / ROUND_PASSES:.0%}",
                        f"{one.call / (one.call + one.other):.0%}",
                    )
                    for one in figures.rounds
                ),
            ),
            "## By the number of clients and of examples",
            "",
            "LeNet.",
            "",
            *_table(
                ("clients", "examples", "seconds", "microseconds a client and example"),
                (
                    (
                        f"{one.clients}",
                        f"{one.examples}",
                        f"{one.seconds:.3g}",
                        f"{one.each_us:.3g}",
                    )
                    for one in (*figures.by_clients, *figures.by_examples)
                ),
            ),
            "## Beside the learned form",
            "",
            "A call of `datadefense-learned`, the default before, which runs every client's model "
            "on all of D_d and learns psi and theta; in turns with a call of the default.",
            "",
            *_table(
                ("model", "clients", "examples", "call", "learned", "times the learned"),
                (_row(one, f"{one.ratio:.2f}") for one in figures.learned),
            ),
            "## Beside the released code",
            "",
            f"The work of a round in the authors' release, written anew for {release.model}, "
            f"{release.clients} clients, {release.examples} examples (benchmarks/defense_cost/"
            f"released.py says what is left out): {release.other:.2f} s, a call {release.call:.2f} "
            f"s, {1 / release.ratio:.1f} times as much.",
            "",
        ]
    )


def _row(one: Beside, *ratios: str) -> tuple[str, ...]:
    sizes = (one.model, f"{one.clients}", f"{one.examples}")
    return (*sizes, f"{one.call:.3g}", f"{one.other:.3g}", *ratios)


def _table(head: Sequence[str], rows: Any) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return [*(f"| {' | '.join(line)} |" for line in lines), ""]
