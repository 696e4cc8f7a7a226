"""The short form of the fuzz suite, and that it can fail, shrink and repeat."""

import logging

import pytest
import torch
from tests.hostile import byte_files, submissions
from tests.hostile.engine import Target, TooLongError, failure, fuzz, keep, kept

from datadefense.defenses import DEFENSES

pytest.importorskip("flwr")
from tests.hostile import flower_replies

CASES = {
    "submissions": 200,
    "client-files": 480,
    "states": 320,
    "data-files": 1_200,
    "flower-replies": 80,
}
"""How many of each, for some twenty seconds in all; `make fuzz` sends as many as there is time."""
TARGETS = {
    one.name: one for one in (*submissions.TARGETS, *byte_files.TARGETS, *flower_replies.TARGETS)
}
PIECES = 2
"""Of each target, so that they can run side by side."""


@pytest.fixture(autouse=True)
def apart(tmp_path, monkeypatch):
    """A cache of its own, and no log of what is rejected."""
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path / "cache"))
    loggers = [logging.getLogger(name) for name in ("datadefense", "flwr")]
    levels = [one.level for one in loggers]
    submissions.quiet()
    yield
    for one, level in zip(loggers, levels, strict=True):
        one.setLevel(level)


@pytest.mark.parametrize("piece", range(PIECES))
@pytest.mark.parametrize("name", CASES)
def test_nothing_hostile_gets_through(tmp_path, name, piece):
    most, told = CASES[name] // PIECES, []
    tally = fuzz(
        [TARGETS[name]],
        piece * 1_000_000,
        tmp_path / "kept",
        lambda tally: tally.cases[name] < most,
        told.append,
    )
    assert not told, "\n".join([*told, *(path.read_text() for path in tally.failures)])
    assert tally.cases[name] >= most


@pytest.mark.parametrize("name", DEFENSES)
def test_every_defense_is_sent_everything(tmp_path, name):
    """One round with every good and every bad content, whoever sends it."""
    contents = [*submissions.GOOD_CONTENTS, *submissions.BAD_CONTENTS]
    parts = [["number", content, "ten", 7] for content in contents]
    parts += [[kind, "honest", "one", 8] for kind in submissions.BAD_IDS]
    parts += [["text", "honest", count, 9] for count in submissions.BAD_COUNTS]
    for sends in ("updates", "models"):
        submissions.check(f"{name} {sends} any", parts, tmp_path)


def test_a_failure_is_shrunk_kept_and_repeated(tmp_path):
    def check(_setting, parts, _folder):
        assert not {3, 17} <= set(parts), "3 and 17 together"

    target = Target("toy", lambda random: ("", random.sample(range(20), 20)), check)
    told = []
    tally = fuzz([target], 5, tmp_path, lambda tally: not tally.cases["toy"], told.append)
    (path,) = tally.failures
    assert sorted(kept(path).parts) == [3, 17]
    assert "3 and 17 together" in path.read_text()
    assert "toy, seed 5: AssertionError: 3 and 17 together" in told[0]
    assert told[1].endswith(f"--replay {path}")
    assert isinstance(failure(target, kept(path)), AssertionError)


def test_what_takes_too_long_fails(tmp_path):
    def check(_setting, _parts, _folder):
        while True:
            pass

    target = Target("toy", lambda random: ("", []), check, seconds=0.1)
    error = failure(target, target.case(0))
    assert isinstance(error, TooLongError)
    assert keep(tmp_path, target.case(0), error).is_file()


def test_the_checks_can_fail():
    """A gate that says too much, or a report with NaN, would be found."""
    for text in ("", "a\nb", "\x1b[2J", "x" * 301):
        with pytest.raises(AssertionError):
            submissions.check_shown(text)
    with pytest.raises(ValueError, match="JSON"):
        submissions.strict({"a": float("nan")})
    assert torch.equal(byte_files.LAYOUT.flatten(byte_files.MODEL), torch.linspace(-1, 1, 603))
