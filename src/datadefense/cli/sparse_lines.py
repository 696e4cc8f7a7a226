"""Lines for a pipe or a log: at most one in some seconds, and the last."""

import time
from collections.abc import Callable

SECONDS = 5.0
"""Least time from one line to the next."""


class SparseLines:
    """Write some of the lines that are shown; ``close`` writes the last if it was held back.

    The time runs from the first line: what is over sooner than that is one line.
    """

    def __init__(
        self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.write, self.clock = write, clock
        self.since: float | None = None
        self.held: str | None = None

    def show(self, line: str) -> None:
        """Write a line, or hold it back until the next one takes its place."""
        now = self.clock()
        self.since = now if self.since is None else self.since
        self.held = line
        if now - self.since >= SECONDS:
            self.close()
            self.since = now

    def close(self) -> None:
        """Write the line that is held back, if there is one."""
        if self.held is not None:
            self.write(self.held)
            self.held = None
