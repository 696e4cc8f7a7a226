"""Cost: the seconds and the memory that a round's replies took on the server."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """What it took to read, check and aggregate the replies.

    ``peak_memory_mb`` is the most that this process has held so far, Flower and the replies
    included; None where the system does not tell.
    """

    seconds: float
    peak_memory_mb: float | None


def peak_memory_mb() -> float | None:
    """Return the peak of this process's resident memory, where Linux tells it.

    >>> peak = peak_memory_mb()
    >>> peak is None or peak > 1
    True
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    sizes = [float(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")]
    return sizes[0] if sizes else None
