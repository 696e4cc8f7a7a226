"""Several runs side by side: a page with a table and two charts, that opens from disk."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from datadefense.experiments.report import STYLE
from datadefense.experiments.summary import Summary
from datadefense.simulation.rounds import RoundRecord

WIDTH, HEIGHT, LEFT, RIGHT, TOP = 720, 280, 44, 130, 12
COLOURS = ("#c8452d", "#2b6cb0", "#2f855a", "#b7791f", "#6b46c1", "#0e7490", "#97266d", "#4a5568")
"""Of the runs, in their order; the first eight can be told apart."""
HEADINGS = ("defense", "MA %", "ASR %", "floor %", "excess %", "attacker's weight", "s/round")


@dataclass(frozen=True, slots=True)
class Compared:
    """One run of a comparison, and where its own page is."""

    summary: Summary
    records: Sequence[RoundRecord]
    link: str


def cells(summary: Summary) -> tuple[str, ...]:
    """Return a run as a row under `HEADINGS`."""
    weight = summary.attacker_weight_mean
    return (
        summary.defense,
        f"{summary.ma_percent:.1f}",
        f"{summary.asr_percent:.1f}",
        f"{summary.asr_floor_percent:.1f}",
        f"{summary.excess_asr_percent:.1f}",
        "" if weight is None else f"{weight:.3f}",
        f"{summary.seconds_per_round:.2f}",
    )


def render_comparison(title: str, about: str, runs: Sequence[Compared]) -> str:
    """Return the page."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in HEADINGS)
    rows = "".join(_row(run) for run in runs)
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(title)}</title><style>{STYLE}
th, td {{ padding: .15rem 1.2rem .15rem 0; text-align: right; }}
th:first-child, td:first-child {{ text-align: left; }} a {{ color: inherit; }}
.scroll {{ overflow-x: auto; }}</style>
<h1>{escape(title)}</h1>
<p>{escape(about)}</p>
<div class="scroll"><table><tr>{head}</tr>{rows}</table></div>
<h2>Attack success rate by round, %</h2>{chart(runs, "asr_percent")}
<h2>Main accuracy by round, %</h2>{chart(runs, "ma_percent")}
<p>Attacked rounds are marked below the axis.</p>
</html>
"""


def chart(runs: Sequence[Compared], field: str) -> str:
    """Return one figure of all runs by round, as SVG; names stand at the ends of the lines."""
    last = max((record.round for run in runs for record in run.records), default=1)

    def x(index: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (index - 1) / max(1, last - 1)

    def y(percent: float) -> float:
        return TOP + (HEIGHT - TOP - 34) * (1 - percent / 100)

    body = [
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(p):.1f}" y2="{y(p):.1f}" '
        f'stroke="var(--line)"/>'
        f'<text x="{LEFT - 6}" y="{y(p) + 4:.1f}" text-anchor="end">{p}</text>'
        for p in range(0, 101, 25)
    ]
    ends: list[tuple[float, str, str]] = []
    for run, colour in zip(runs, _colours(len(runs)), strict=True):
        values = [(r.round, dataclasses.asdict(r)[field]) for r in run.records]
        points = [(x(index), y(value)) for index, value in values if value is not None]
        path = " ".join(f"{across:.1f},{down:.1f}" for across, down in points)
        body.append(f'<polyline points="{path}" stroke="{colour}" stroke-width="2" fill="none"/>')
        if points:
            ends.append((points[-1][1], colour, run.summary.defense))
    below = 0.0
    for down, colour, name in sorted(ends):
        below = max(down + 4, below + 13)
        body.append(
            f'<text x="{WIDTH - RIGHT + 6}" y="{below:.1f}" style="fill: {colour}; '
            f'font-size: 12px">{escape(name)}</text>'
        )
    attacked = sorted({r.round for run in runs for r in run.records if r.attackers})
    body += [
        f'<path class="attack" d="M{x(index):.1f} {y(0) + 4:.1f} l4 7 h-8 z" fill="var(--faint)"/>'
        for index in attacked
    ]
    body.append(f'<text x="{LEFT}" y="{HEIGHT - 6}">round 1</text>')
    body.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 6}" text-anchor="end">round {last}</text>')
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(body)}</svg>'


def _colours(count: int) -> list[str]:
    return [COLOURS[place % len(COLOURS)] for place in range(count)]


def _row(run: Compared) -> str:
    name, *rest = cells(run.summary)
    link = f'<td><a href="{escape(run.link)}">{escape(name)}</a></td>'
    return f"<tr>{link}{''.join(f'<td>{escape(cell)}</td>' for cell in rest)}</tr>"
