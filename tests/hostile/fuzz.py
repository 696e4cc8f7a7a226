"""The long form: ``python -m tests.hostile.fuzz``, which ``make fuzz`` runs.

It goes on for FUZZ_SECONDS (600) from FUZZ_SEED (drawn, and printed), or for as many submissions as
``--submissions`` says. A failure is shrunk, written to a file and told with the command that
repeats it.
"""

import argparse
import os
import secrets
import sys
import tempfile
import time
from pathlib import Path

import torch
from tests.hostile import byte_files, flower_replies, submissions
from tests.hostile.engine import failure, fuzz, kept

TARGETS = (*submissions.TARGETS, *byte_files.TARGETS, *flower_replies.TARGETS)
REPRODUCERS = Path("build/fuzz")


def main() -> int:
    settings = argparse.ArgumentParser(description=__doc__)
    environment = os.environ
    settings.add_argument("--seconds", type=float, default=environment.get("FUZZ_SECONDS") or 600)
    settings.add_argument("--seed", type=int, default=environment.get("FUZZ_SEED") or None)
    settings.add_argument("--submissions", type=int, default=0, help="at least so many")
    settings.add_argument("--only", help="name of the one target")
    settings.add_argument("--replay", type=Path, help="file of one case")
    chosen = settings.parse_args()
    torch.set_num_threads(1)
    submissions.quiet()
    with tempfile.TemporaryDirectory(prefix="hostile-cache-") as cache:
        environment["DATADEFENSE_CACHE"] = cache
        if chosen.replay is not None:
            return replay(chosen.replay)
        return run(chosen)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def replay(path: Path) -> int:
    case = kept(path)
    (target,) = (one for one in TARGETS if one.name == case.target)
    if (error := failure(target, case)) is not None:
        raise error
    say(f"{path} passes")
    return 0


def run(chosen: argparse.Namespace) -> int:
    targets = [one for one in TARGETS if chosen.only in (None, one.name)]
    seed = secrets.randbits(31) if chosen.seed is None else chosen.seed
    say(f"seed {seed}, {chosen.seconds:g} s, {', '.join(one.name for one in targets)}")
    began = last = time.monotonic()

    def more(tally) -> bool:
        nonlocal last
        if (now := time.monotonic()) - last > 60:
            last = now
            say(f"{now - began:4.0f} s: {sum(tally.cases.values()):,} cases")
        enough = tally.parts["submissions"] >= chosen.submissions
        return now - began < chosen.seconds or not enough

    tally = fuzz(targets, seed, REPRODUCERS, more, say)
    for target in targets:
        sent = f", {tally.parts[target.name]:,} sent" if target.times else ""
        say(
            f"{target.name}: {tally.cases[target.name]:,} cases{sent}, "
            f"slowest {tally.slowest[target.name]:.2f} s"
        )
    say(f"{len(tally.failures)} failures in {time.monotonic() - began:.0f} s from seed {seed}")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
