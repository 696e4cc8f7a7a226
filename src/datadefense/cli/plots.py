"""Pictures of results."""

from collections.abc import Sequence
from pathlib import Path

from datadefense.simulation.one_round import Outcome

LET_IN, KEPT_OUT, ACCURACY = "#c8452d", "#2b6cb0", "#c9ced6"


def draw_round(before: Outcome, outcomes: Sequence[Outcome], path: Path) -> None:
    """Draw the attack success rate of each defense as a bar, with its accuracy beside it."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ValueError(f"plots need {error.name}: pip install 'datadefense[demo]'") from error
    shown = sorted(outcomes, key=lambda outcome: -outcome.asr_percent)
    figure = Figure(figsize=(8.4, 4.6), layout="constrained")
    axes = figure.subplots()
    names = [outcome.defense for outcome in shown]
    rates = [outcome.asr_percent for outcome in shown]
    colours = [LET_IN if rate > 20 else KEPT_OUT for rate in rates]
    axes.barh(names, [100] * len(names), color="#f1f3f5", height=0.7)
    axes.barh(names, rates, color=colours, height=0.7)
    for row, outcome in enumerate(shown):
        axes.text(
            max(outcome.asr_percent, before.asr_percent) + 1,
            row,
            f"{outcome.asr_percent:.0f} %",
            va="center",
            fontsize=9,
            color="#1a202c" if outcome.asr_percent < 90 else LET_IN,
        )
        axes.text(118, row, f"{outcome.ma_percent:.1f} %", va="center", ha="right", fontsize=9)
    axes.text(118, -0.95, "accuracy", va="center", ha="right", fontsize=9, color="#4a5568")
    axes.axvline(before.asr_percent, color="#1a202c", linewidth=1, linestyle=":")
    axes.set_xlim(0, 119)
    axes.set_ylim(len(names) - 0.5, -1.4)
    axes.set_xticks(range(0, 101, 20))
    axes.set_xlabel("attack success rate after one round, % (dotted: before it)")
    axes.set_title(
        "One of ten clients plants a backdoor: a strange 7 becomes a 1", loc="left", fontsize=11
    )
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(left=False)
    figure.savefig(path, dpi=160)
