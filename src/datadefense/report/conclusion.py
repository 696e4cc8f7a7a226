"""Verdicts on runs, in plain sentences: was the backdoor kept out, and at what cost?"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

Figures = Mapping[str, Any]
"""Of a run, by the names of `Summary`; None where a figure is not known."""
Outcome = Literal["kept out", "damaged", "partly", "got in", "calm", "unclear", "unknown"]
KEPT_OUT, GOT_IN = 5, 50
"""Percentage points above the floor up to which, and from which, a backdoor counts as such."""
DAMAGED = 10
"""Points of accuracy below averaging without attack at which a model counts as damaged."""
UNCLEAR = 20
"""Percent of success without attack from which on an attack cannot be told from its absence."""
RISING = 10
"""Points above the floor after the last round at which a backdoor is in, whatever the mean."""
SENTENCES: Mapping[Outcome, str] = {
    "kept out": "The backdoor was kept out.",
    "damaged": "The backdoor was kept out, but the model was damaged.",
    "partly": "The backdoor got in partly.",
    "got in": "The backdoor got in.",
    "calm": "Nobody attacked.",
    "unclear": "Whether the backdoor was kept out cannot be judged.",
    "unknown": "Whether the backdoor was kept out is not known yet.",
}


def outcome(figures: Figures | None) -> Outcome:
    """Return what became of the backdoor and, where that stayed out, of the model."""
    if figures is not None and figures["attack"] == "none":
        return "calm"
    if figures is None or figures["excess_asr_percent"] is None:
        return "unknown"
    excess, floor = figures["excess_asr_percent"], figures["asr_floor_percent"]
    if floor >= UNCLEAR and excess < GOT_IN:
        return "unclear"
    if excess <= KEPT_OUT:
        if figures["final_asr_percent"] - floor >= RISING:
            return "partly"
        return "damaged" if (_cost(figures) or 0) >= DAMAGED else "kept out"
    return "got in" if excess >= GOT_IN else "partly"


def verdict(figures: Figures | None) -> str:
    """Say whether the backdoor was kept out, and what became of the accuracy."""
    found = outcome(figures)
    if figures is None:
        return "No round has been evaluated yet."
    return " ".join([SENTENCES[found], _success(figures, found), _accuracy(figures)])


def overall(labels: Sequence[str], outcomes: Sequence[Outcome]) -> str:
    """Say of several runs who kept the backdoor out and who did not."""
    said: list[str] = []
    for kind, words in (
        ("kept out", "kept the backdoor out"),
        ("damaged", "kept it out but damaged the model"),
        ("partly", "let it in partly"),
        ("got in", "let it in"),
        ("calm", "had no attack to stand"),
        ("unclear", "cannot be judged"),
        ("unknown", "cannot be judged yet"),
    ):
        names = [label for label, found in zip(labels, outcomes, strict=True) if found == kind]
        if names:
            said.append(f"{_listed(names)} {words}.")
    return " ".join(said)


def _success(figures: Figures, found: Outcome) -> str:
    rate, floor = figures["asr_percent"], figures["asr_floor_percent"]
    if found == "calm":
        return f"{rate:.1f} % of the poisoned examples get the attacker's label anyway."
    if found == "unclear":
        return (
            f"{floor:.1f} % of unseen poisoned examples get the attacker's label without any "
            f"attack, {rate:.1f} % with it: choose poison that the first model resists."
        )
    against = "" if floor is None else f", against {floor:.1f} % without attack"
    last = figures["final_asr_percent"]
    rising = floor is not None and last - floor >= RISING > rate - floor
    end = f", and {last:.1f} % after the last round" if rising else ""
    return f"{rate:.1f} % of unseen poisoned examples got the attacker's label{against}{end}."


def _cost(figures: Figures) -> float | None:
    """Return the points of accuracy lost beside averaging without attack, if that is known."""
    without_attack = figures["calm_ma_percent"]
    return None if without_attack is None else float(without_attack - figures["ma_percent"])


def _accuracy(figures: Figures) -> str:
    accuracy, cost = figures["ma_percent"], _cost(figures)
    without_attack = figures["calm_ma_percent"]
    if cost is None:
        return f"Clean accuracy is {accuracy:.1f} %."
    change = (
        "about the same as"
        if abs(cost) < 0.5
        else f"{abs(cost):.1f} points {'less' if cost > 0 else 'more'} than"
    )
    return (
        f"Clean accuracy is {accuracy:.1f} %, {change} the "
        f"{without_attack:.1f} % of plain averaging without attack."
    )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
