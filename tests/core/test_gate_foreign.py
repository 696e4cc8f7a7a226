"""The gate and values that are too long to print or whose own methods raise."""

import json

import numpy as np
import pytest
import torch
from tests.core.test_gate import GLOBAL, LAYOUT, good, reason_of

from datadefense import Gate, Server, Submission, create, defend
from datadefense.core.outcome_json import outcome_json

HUGE = 10**5000
"""A number that Python refuses to print."""


class Stubborn:
    """An object of which nothing can be asked."""

    def _refuse(self, *arguments):
        raise RuntimeError("no")

    __repr__ = __str__ = __eq__ = __hash__ = __len__ = __int__ = __index__ = __bool__ = _refuse
    __class__ = property(_refuse)


class MuteError(Exception):
    __repr__ = __str__ = Stubborn._refuse


class Liar(str):
    """Text that is equal to nothing, itself included, and cannot be hashed or shown."""

    __slots__ = ()
    __repr__ = __str__ = __eq__ = __hash__ = __len__ = __getitem__ = Stubborn._refuse


ODD = {
    "huge": HUGE,
    "list of huge": [HUGE],
    "tuple of huge": (HUGE,),
    "dict of huge": {HUGE: HUGE},
    "complex": 1j,
    "stubborn": Stubborn(),
    "class": Stubborn,
    "lone surrogate": "\udc80",
    "escape": "\x1b[2J",
    "long": "x" * 10**6,
    "empty": "",
    "bytes": b"\x1b" * 10**6,
    "array": np.array([HUGE], dtype=object),
    "duration": np.timedelta64("NaT"),
    "mute": MuteError(),
}


NO_KEYS = {"list of huge", "dict of huge", "array", "stubborn"}
PLACES = [(place, which) for place in ("client_id", "content", "num_examples") for which in ODD]
PLACES += [("name", which) for which in ODD if which not in NO_KEYS]


@pytest.mark.parametrize(("place", "which"), PLACES)
def test_what_cannot_be_shown_is_turned_away_and_the_report_is_written(
    place, which, datadefense_log
):
    odd = ODD[which]
    evil = {"client_id": "evil", "content": torch.ones(6), "num_examples": 1}
    if place == "name":
        evil["content"] = {odd: torch.ones(6)}
    else:
        evil[place] = odd
    admission = Gate(LAYOUT).admit(1, GLOBAL, [good("a"), Submission(**evil), good("b")])
    assert admission.round.client_ids == ("a", "b")
    (rejection,) = admission.rejected
    assert len(str(rejection.client_id)) <= 210
    assert len(rejection.reason) <= 210
    assert f"{rejection.client_id}{rejection.reason}".isprintable()
    result = defend(create("median"), None, admission, GLOBAL, Server())
    told = [outcome_json(outcome) for outcome in result.outcomes]
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told[1]["reason"]["text"] == rejection.reason
    assert len(datadefense_log.text.strip().splitlines()) == 1


def test_ids_are_64_bits_or_printable_text():
    for odd in (2**64, -(2**63) - 1, HUGE, "", "x" * 256, "a\nb", "\u202e", (HUGE,)):
        assert "64 bits or 1..255 printable characters" in reason_of(good(odd))
    for fine in (2**64 - 1, -(2**63), np.uint64(2**64 - 1), "x" * 255, "Zürich 7", np.str_("a")):
        (admitted,) = Gate(LAYOUT).admit(1, GLOBAL, [good(fine)]).round.client_ids
        assert admitted == fine
        assert type(admitted) in (int, str)


def test_an_id_of_a_class_of_its_own_is_the_text_it_holds():
    admission = Gate(LAYOUT).admit(1, GLOBAL, [good(Liar("a")), good("a"), good(Liar("a"))])
    assert admission.round.client_ids == ("a",)
    assert [one.reason for one in admission.rejected] == [
        "second update of this client in the round"
    ] * 2
