"""The page of a run: what happened, as a sentence, two curves and the figures, in one HTML file."""

import dataclasses
from collections.abc import Sequence
from html import escape

from datadefense.experiments.axes import Axes
from datadefense.experiments.experiment import Experiment, write_toml
from datadefense.experiments.summary import Summary
from datadefense.simulation.rounds import RoundRecord

STYLE = """
:root { color-scheme: light dark; --ink: #1a202c; --paper: #fff; --faint: #8892a0; --line: #d5dae1;
  --ma: #2b6cb0; --asr: #c8452d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7ebf0; --paper: #14181d; --line: #39424d;
  --ma: #6fb1f2; --asr: #f0826b; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 760px; margin: 2rem auto; padding: 0 1rem; }
svg { width: 100%; height: auto; } text { fill: var(--faint); font-size: 11px; }
table { border-collapse: collapse; } td { padding: .15rem 1.5rem .15rem 0; }
td:last-child { text-align: right; font-variant-numeric: tabular-nums; }
pre { overflow-x: auto; font-size: 13px; } .ma { color: var(--ma); } .asr { color: var(--asr); }
"""


def render(experiment: Experiment, summary: Summary, records: Sequence[RoundRecord]) -> str:
    """Return the page; it opens from disk and needs no network."""
    rows = "".join(
        f"<tr><td>{escape(key)}</td><td>{_show(value)}</td></tr>"
        for key, value in dataclasses.asdict(summary).items()
    )
    title = f"{summary.setup}: {summary.attack} against {summary.defense}"
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(title)}</title><style>{STYLE}</style>
<h1>{escape(title)}</h1>
<p>{escape(verdict(summary))}</p>
<p><b class="ma">main accuracy</b> and <b class="asr">attack success rate</b> in percent by round;
attacked rounds are marked below the axis, the dotted line is the floor.</p>
{curves(records, summary.asr_floor_percent)}
<table>{rows}</table>
<h2>Configuration</h2><pre>{escape(write_toml(experiment))}</pre>
</html>
"""


def verdict(summary: Summary) -> str:
    """Say in a sentence whether the backdoor was kept out."""
    if summary.attack == "none":
        return (
            f"Nobody attacked. The model gets {summary.ma_percent:.1f} % of the test right, and "
            f"{summary.asr_percent:.1f} % of the poisoned examples get the attacker's label anyway."
        )
    excess = summary.excess_asr_percent
    kept = "was kept out" if excess <= 5 else "got in" if excess >= 50 else "got in partly"
    return (
        f"The backdoor {kept}: {summary.asr_percent:.1f} % of unseen poisoned examples got the "
        f"attacker's label, against {summary.asr_floor_percent:.1f} % if nobody attacks. "
        f"The accuracy on the main task is {summary.ma_percent:.1f} %."
    )


def curves(records: Sequence[RoundRecord], floor: float) -> str:
    """Return the two curves as SVG."""
    axes = Axes(max((record.round for record in records), default=1))

    def line(name: str, values: list[tuple[int, float]]) -> str:
        colour = f'stroke="var(--{name})" stroke-width="2" fill="none"'
        return f'<polyline class="{name}" points="{axes.points(values)}" {colour}/>'

    accuracy = [(r.round, r.ma_percent) for r in records if r.ma_percent is not None]
    success = [(r.round, r.asr_percent) for r in records if r.asr_percent is not None]
    marks = "".join(axes.attack(r.round, "var(--asr)") for r in records if r.attackers)
    dotted = axes.across(floor, 'stroke="var(--faint)" stroke-dasharray="2 4"')
    return axes.svg(dotted + line("ma", accuracy) + line("asr", success) + marks)


def _show(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else escape(str(value))
