"""Pictures of results."""

from collections.abc import Sequence
from pathlib import Path

from datadefense.core.settings import SettingsError
from datadefense.runs.tables import COLOURS, Compared
from datadefense.simulation.scores import SCORES


def draw_curves(runs: Sequence[Compared], path: Path) -> None:
    """Draw each score by round, one line a run, attacked rounds marked."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise SettingsError(f"plots need {error.name}: pip install 'datadefense[demo]'") from error
    figure = Figure(figsize=(4.5 * len(SCORES), 3.8), layout="constrained")
    panels = figure.subplots(1, len(SCORES), squeeze=False)[0]
    attacked = sorted({r.round for run in runs for r in run.records if r.attackers})
    for axes, score in zip(panels, reversed(SCORES), strict=True):
        for place, run in enumerate(runs):
            known = [(r.round, r.scores[score.name]) for r in run.records if score.name in r.scores]
            colour = COLOURS[place % len(COLOURS)]
            axes.plot(*zip(*known, strict=True), color=colour, label=run.summary.defense)
        low, high = score.range
        below = low - 0.04 * (high - low)
        axes.plot(
            attacked, [below] * len(attacked), "^", color="#8892a0", markersize=5, clip_on=False
        )
        axes.set_ylim(low - 0.06 * (high - low), high + 0.02 * (high - low))
        axes.set_xlabel("round (marked: attacked)")
        axes.set_title(f"{score.title.lower()}, {score.unit}", loc="left", fontsize=11)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    panels[-1].legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=160)
