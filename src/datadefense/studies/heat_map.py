"""The overview as a picture: defenses down, attacks across, the darker the more got in."""

from pathlib import Path

from matplotlib.figure import Figure

from datadefense.studies.overview import LOST, Overview, excess, in_words, lost

DARK = 55.0
"""Percent from which on a cell's number is white."""


def heat_map(found: Overview) -> Figure:
    """Return the picture; cells that have not been run stay hatched."""
    names, cases = found.defenses(), list(found.cases)
    figure = Figure(
        figsize=(2.2 + 0.78 * len(cases), 2.3 + 0.34 * len(names)), layout="constrained"
    )
    panel = figure.subplots()
    grid = [[_value(found, case, name) for case in cases] for name in names]
    panel.patch.set(hatch="////", edgecolor="0.85", facecolor="white")
    panel.imshow(grid, cmap="OrRd", vmin=0, vmax=100, aspect="auto")
    for row, name in enumerate(names):
        for column, case in enumerate(cases):
            cell = found.cases[case].get(name)
            if cell is not None:
                rate = max(0.0, excess(cell))
                damage = f"\n{-lost(cell):.0f} MA" if lost(cell) >= LOST else ""
                panel.text(
                    column,
                    row,
                    f"{rate:.0f}{damage}" if rate >= 10 else f"{rate:.1f}{damage}",
                    ha="center",
                    va="center",
                    linespacing=0.9,
                    fontsize=7 if damage else 9,
                    color="white" if rate > DARK else "black",
                )
    panel.set_xticks(
        range(len(cases)),
        [in_words(case).replace(", ", "\n") for case in cases],
        fontsize=7,
    )
    panel.set_yticks(range(len(names)), names, fontsize=9)
    panel.get_yticklabels()[-1].set_fontweight("bold")
    panel.xaxis.tick_top()
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    panel.set_xlabel(
        "Attack success above the floor, %, one seed. MA: points of accuracy lost, from"
        f" {LOST:g} on. Hatched: not run.",
        fontsize=8,
        loc="left",
    )
    return figure


def _value(found: Overview, case: tuple[str, str, str], name: str) -> float:
    cell = found.cases[case].get(name)
    return float("nan") if cell is None else max(0.0, excess(cell))


def draw_overview(found: Overview, path: Path) -> None:
    """Write the picture into a PNG file."""
    heat_map(found).savefig(path, dpi=110, metadata={"Software": None})
