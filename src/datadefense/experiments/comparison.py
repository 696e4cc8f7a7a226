"""Several runs side by side: a page with a table and two charts, that opens from disk."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import fill

from datadefense.experiments.axes import Axes
from datadefense.experiments.report import STYLE
from datadefense.experiments.summary import Summary
from datadefense.simulation.rounds import RoundRecord

NAMES = 130
"""Room for the names beside a chart."""
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
    axes = Axes(last, height=280, right=NAMES)
    body: list[str] = []
    ends: list[tuple[float, str, str]] = []
    for run, colour in zip(runs, _colours(len(runs)), strict=True):
        values = [(r.round, dataclasses.asdict(r)[field]) for r in run.records]
        known = [(index, value) for index, value in values if value is not None]
        style = f'stroke="{colour}" stroke-width="2" fill="none"'
        body.append(f'<polyline points="{axes.points(known)}" {style}/>')
        if known:
            ends.append((axes.y(known[-1][1]), colour, run.summary.defense))
    below = 0.0
    for down, colour, name in sorted(ends):
        below = max(down + 4, below + 13)
        body.append(
            f'<text x="{axes.width - NAMES + 6}" y="{below:.1f}" style="fill: {colour}; '
            f'font-size: 12px">{escape(name)}</text>'
        )
    attacked = sorted({r.round for run in runs for r in run.records if r.attackers})
    body += [axes.attack(index, "var(--faint)") for index in attacked]
    return axes.svg("".join(body))


def markdown(title: str, about: str, runs: Sequence[Compared]) -> str:
    """Return the table as a document of its own."""
    rows = [HEADINGS, ("---",) * len(HEADINGS), *(cells(run.summary) for run in runs)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"# {title}\n\n{fill(about, 100)}\n\n{table}\n"


def _colours(count: int) -> list[str]:
    return [COLOURS[place % len(COLOURS)] for place in range(count)]


def _row(run: Compared) -> str:
    name, *rest = cells(run.summary)
    link = f'<td><a href="{escape(run.link)}">{escape(name)}</a></td>'
    return f"<tr>{link}{''.join(f'<td>{escape(cell)}</td>' for cell in rest)}</tr>"
