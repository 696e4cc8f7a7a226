"""Axes of a chart in percent by round, as SVG; curves are drawn into them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Axes:
    """A frame for rounds 1 to ``last``; ``right`` is the room that is left beside it."""

    last: int
    width: int = 720
    height: int = 260
    left: int = 44
    right: int = 8
    top: int = 12

    def x(self, index: float) -> float:
        """Return where a round stands."""
        span = self.width - self.left - self.right
        return self.left + span * (index - 1) / max(1, self.last - 1)

    def y(self, percent: float) -> float:
        """Return how far down a percentage stands."""
        return self.top + (self.height - self.top - 34) * (1 - percent / 100)

    def points(self, values: list[tuple[int, float]]) -> str:
        """Return a curve's points."""
        return " ".join(f"{self.x(index):.1f},{self.y(value):.1f}" for index, value in values)

    def across(self, percent: float, style: str) -> str:
        """Return a level line."""
        place = f'x1="{self.left}" x2="{self.width - self.right}"'
        level = f'y1="{self.y(percent):.1f}" y2="{self.y(percent):.1f}"'
        return f"<line {place} {level} {style}/>"

    def attack(self, index: int, colour: str) -> str:
        """Return the mark of an attacked round, below the axis."""
        return (
            f'<path class="attack" d="M{self.x(index):.1f} {self.y(0) + 4:.1f} l4 7 h-8 z" '
            f'fill="{colour}"><title>round {index} was attacked</title></path>'
        )

    def svg(self, body: str) -> str:
        """Return the chart: grid, scale, and what is drawn into it."""
        grid = "".join(
            self.across(p, 'stroke="var(--line)"')
            + f'<text x="{self.left - 6}" y="{self.y(p) + 4:.1f}" text-anchor="end">{p}</text>'
            for p in range(0, 101, 25)
        )
        ends = (
            f'<text x="{self.left}" y="{self.height - 6}">round 1</text>'
            f'<text x="{self.width - self.right}" y="{self.height - 6}" text-anchor="end">'
            f"round {self.last}</text>"
        )
        return f'<svg viewBox="0 0 {self.width} {self.height}" role="img">{grid}{body}{ends}</svg>'
