"""Pictures of results."""

from collections.abc import Sequence
from pathlib import Path

from datadefense.core.settings import SettingsError
from datadefense.runs.tables import COLOURS, Compared


def draw_curves(runs: Sequence[Compared], path: Path) -> None:
    """Draw success rate and accuracy by round, one line a run, attacked rounds marked."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise SettingsError(f"plots need {error.name}: pip install 'datadefense[demo]'") from error
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for place, run in enumerate(runs):
        colour = COLOURS[place % len(COLOURS)]
        for axes, field in ((left, "asr_percent"), (right, "ma_percent")):
            values = [(r.round, getattr(r, field)) for r in run.records]
            known = [(index, value) for index, value in values if value is not None]
            axes.plot(*zip(*known, strict=True), color=colour, label=run.summary.defense)
    attacked = sorted({r.round for run in runs for r in run.records if r.attackers})
    for axes, title in ((left, "attack success rate, %"), (right, "main accuracy, %")):
        axes.plot(attacked, [-4] * len(attacked), "^", color="#8892a0", markersize=5, clip_on=False)
        axes.set_ylim(-6, 102)
        axes.set_xlabel("round (marked: attacked)")
        axes.set_title(title, loc="left", fontsize=11)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    right.legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=160)
