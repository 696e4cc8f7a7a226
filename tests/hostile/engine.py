"""The engine of the fuzz suite: draw cases by seed, check them, shrink what fails, keep it.

A case is a setting and a list of parts that JSON can hold. So it can be written to a file, made
smaller by leaving parts out, and run again from that file.
"""

import json
import os
import random
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

MEMORY = next((path for path in ("/dev/shm",) if os.access(path, os.W_OK)), None)  # noqa: S108
"""Where the files of a case go: thousands of them need no disk."""
MOST_TRIES = 400
"""Cases that shrinking may try."""


MOST_FAILURES = 3
"""Failures after which there is enough to mend."""


class TooLongError(Exception):
    """A case that took longer than its target allows."""


@dataclass(frozen=True)
class Case:
    """What is checked: the name of its target, the seed it was drawn by, its setting and parts."""

    target: str
    seed: int
    setting: str
    parts: list[Any]


@dataclass(frozen=True)
class Target:
    """A door that hostile things come through.

    Attributes:
        name: what it is called.
        draw: makes a setting and parts of a source of random numbers.
        check: raises if an invariant is broken; the folder is empty, and its own.
        seconds: most processor time that a case may take.
        times: how often a case sends each of its parts; 0 where parts are bytes.
        turns: cases that it gets where others get one.
    """

    name: str
    draw: Callable[[random.Random], tuple[str, list[Any]]]
    check: Callable[[str, list[Any], Path], None]
    seconds: float = 10.0
    times: int = 1
    turns: int = 1

    def case(self, seed: int) -> Case:
        setting, parts = self.draw(random.Random(f"{self.name} {seed}"))
        return Case(self.name, seed, setting, parts)


@dataclass
class Tally:
    """How many cases and parts went through each target, and which files tell of failures."""

    cases: Counter = field(default_factory=Counter)
    parts: Counter = field(default_factory=Counter)
    slowest: dict[str, float] = field(default_factory=dict)
    failures: list[Path] = field(default_factory=list)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise in the middle of what takes far too long, on the clock or on the processor."""

    def too_long(*_):
        raise TooLongError(f"not done after {4 * seconds:g} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, 4 * seconds)
    began = time.process_time()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if (took := time.process_time() - began) > seconds:
        raise TooLongError(f"took {took:.1f} s of processor time, expected <= {seconds:g}")


def failure(target: Target, case: Case) -> BaseException | None:
    """Check a case; return what it raised, if anything."""
    with tempfile.TemporaryDirectory(prefix="hostile-", dir=MEMORY) as folder:
        try:
            with at_most(target.seconds):
                target.check(case.setting, case.parts, Path(folder))
        except Exception as error:
            return error
    return None


def shrunk(target: Target, case: Case, kind: type) -> Case:
    """Return a case with as few parts as fail in the same way."""
    tries, size = 0, max(1, len(case.parts) // 2)
    while size:
        start = 0
        while start < len(case.parts) and tries < MOST_TRIES:
            smaller = replace(case, parts=case.parts[:start] + case.parts[start + size :])
            tries += 1
            if type(failure(target, smaller)) is kind:
                case = smaller
            else:
                start += size
        size //= 2
    return case


def keep(folder: Path, case: Case, error: BaseException) -> Path:
    """Write a case that fails to a file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{case.target}-{case.seed}.json"
    told = "".join(traceback.format_exception(error))
    content = {"failure": told, **vars(case)}
    path.write_text(json.dumps(content, indent=1))
    return path


def kept(path: Path) -> Case:
    """Read a case back."""
    content = json.loads(path.read_text())
    content.pop("failure")
    return Case(**content)


def fuzz(
    targets: Sequence[Target],
    first: int,
    keep_in: Path,
    more: Callable[[Tally], bool],
    say: Callable[[str], None],
) -> Tally:
    """Give each target one case after another, as long as there should be ``more``."""
    tally, seed = Tally(), first
    while more(tally) and len(tally.failures) < MOST_FAILURES:
        for target in targets:
            for turn in range(target.turns):
                _try(target, target.case(target.turns * seed + turn), keep_in, tally, say)
        seed += 1
    return tally


def _try(
    target: Target, case: Case, keep_in: Path, tally: Tally, say: Callable[[str], None]
) -> None:
    began = time.process_time()
    error = failure(target, case)
    took = time.process_time() - began
    tally.cases[target.name] += 1
    tally.parts[target.name] += target.times * len(case.parts)
    tally.slowest[target.name] = max(took, tally.slowest.get(target.name, 0.0))
    if error is not None:
        small = shrunk(target, case, type(error))
        path = keep(keep_in, small, failure(target, small) or error)
        tally.failures.append(path)
        say(f"FAILED {target.name}, seed {case.seed}: {type(error).__name__}: {error}"[:500])
        say(f"  again with: python -m tests.hostile.fuzz --replay {path}")
