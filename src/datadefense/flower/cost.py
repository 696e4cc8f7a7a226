"""Cost: the seconds and the memory that a round's replies took on the server."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """What it took to read, check and aggregate the replies.

    ``peak_memory_mb`` is the most that this process has held so far, Flower and the replies
    included; None where the system does not tell.
    """

    seconds: float
    peak_memory_mb: float | None
