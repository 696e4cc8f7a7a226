"""How long a call takes, how much memory it needs, and who else was at work meanwhile."""

import ctypes
import gc
import os
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

TURN_SECONDS = 0.05
"""A contender that is faster than this is called more than once in its turn."""
MOST_CALLS = 10
"""Most calls of a contender in one turn."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A call to time: ``call(prepare())``, of which ``prepare`` is not timed."""

    name: str
    prepare: Callable[[], Any]
    call: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of each timed call of a contender, and what its first call returned."""

    seconds: tuple[float, ...]
    first: Any

    @property
    def median_ms(self) -> float:
        """The median in milliseconds."""
        return 1e3 * statistics.median(self.seconds)

    @property
    def best_ms(self) -> float:
        """The least in milliseconds."""
        return 1e3 * min(self.seconds)


def race(contenders: Sequence[Contender], repeats: int) -> Mapping[str, Times]:
    """Time all contenders in turns: after one warm-up each, ``repeats`` times through them all.

    Each time in another order, so that nobody always comes behind the same neighbour.
    """
    first = {contender.name: _timed(contender) for contender in contenders}
    seconds: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for turn in range(repeats):
        for contender in random.Random(turn).sample(contenders, len(contenders)):
            warm_up, _ = first[contender.name]
            for _ in range(min(MOST_CALLS, max(1, int(TURN_SECONDS / warm_up)))):
                seconds[contender.name].append(_timed(contender)[0])
    return {name: Times(tuple(seconds[name]), result) for name, (_, result) in first.items()}


def _timed(contender: Contender) -> tuple[float, Any]:
    prepared = contender.prepare()
    start = perf_counter()
    result = contender.call(prepared)
    return perf_counter() - start, result


def peak_extra_bytes(run: Callable[[], object]) -> int | None:
    """Return by how much ``run`` raises the peak of resident memory; None if it cannot be told.

    Linux only: writing 5 to ``clear_refs`` sets the peak back to what is resident now. Free pages
    that the allocator still holds are given back first, so that ``run`` cannot use them unseen.
    """
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except (AttributeError, OSError):
        return None
    before = status_bytes("VmRSS")
    run()
    return status_bytes("VmHWM") - before


def status_bytes(field: str) -> int:
    """Return a size that Linux reports of this process, such as VmRSS or VmHWM."""
    lines = Path("/proc/self/status").read_text().splitlines()
    values = dict(line.split(":", 1) for line in lines)
    return 1024 * int(values[field].split()[0])


def others_share() -> Callable[[], float | None]:
    """Start a watch; call it to learn what share of the cores other processes took since.

    Times of parallel code say little when another process holds a core. Linux only, else None.
    """
    start, busy, own = perf_counter(), _busy_seconds(), process_time()

    def share() -> float | None:
        now = _busy_seconds()
        if busy is None or now is None:
            return None
        others = (now - busy) - (process_time() - own)
        return max(0.0, others / ((perf_counter() - start) * (os.cpu_count() or 1)))

    return share


def _busy_seconds() -> float | None:
    """Seconds that all cores together have worked since the start of the machine."""
    try:
        fields = Path("/proc/stat").read_text().splitlines()[0].split()
    except OSError:
        return None
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
