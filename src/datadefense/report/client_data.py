"""What a page needs of the clients: who was there, with what weight, evidence and reason.

A matrix with a row a round and a column a place: attackers first, then the others from the heaviest
to the lightest, and at the end of either group those whom the gate turned away.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datadefense.core.foreign import sanitize
from datadefense.core.outcomes import ClientOutcome, Verdict
from datadefense.core.reasons import Reason, pattern
from datadefense.report.downsample import shown_rounds
from datadefense.report.packing import pack_bits, pack_floats, pack_levels, pack_shorts
from datadefense.simulation.rounds import RoundRecord

VERDICTS = tuple(Verdict)
"""In the order of their numbers on the page, which begin with 1; 0 is a place where nobody was."""
LONGEST = 80
"""Characters of a client's name that are shown."""


def client_data(records: Sequence[RoundRecord], most_places: int) -> dict[str, Any] | None:
    """Return the clients of all rounds as plain values, or None if there never was any.

    Args:
        records: the rounds.
        most_places: how many places in all a page can hold; of longer runs not all rounds are in.
    """
    width = max((len(record.outcomes) for record in records), default=0)
    if not width:
        return None
    shown = shown_rounds(records, most_places // width)
    names, codes, words = _Table(), _Table(), _Table()
    evidence = dict.fromkeys(
        name for record in shown for outcome in record.outcomes for name in outcome.evidence
    )
    shape = (len(shown), width)
    verdicts, attacks, who, why, says = (np.zeros(shape, dtype=int) for _ in range(5))
    weights, values, limits = (np.full(shape, math.nan) for _ in range(3))
    columns = {name: np.full(shape, math.nan) for name in evidence}
    for row, record in enumerate(shown):
        attackers = set(map(str, record.attackers))
        for place, client in enumerate(people(record)):
            verdicts[row, place] = 1 + VERDICTS.index(client.verdict)
            attacks[row, place] = str(client.client) in attackers
            who[row, place] = names.place(sanitize(str(client.client), LONGEST))
            weights[row, place] = _number(client.weight)
            for name, value in client.evidence.items():
                columns[name][row, place] = value
            if (reason := client.reason) is not None:
                why[row, place] = 1 + codes.place(reason.code)
                says[row, place] = words.place(pattern(reason))
                values[row, place], limits[row, place] = _numbers(reason)
    return {
        "rounds": [record.round for record in shown],
        "width": width,
        "names": names.texts,
        "name": pack_shorts(who),
        "verdicts": [str(verdict) for verdict in VERDICTS],
        "verdict": pack_levels(verdicts, 0, 254),
        "attacks": pack_bits(attacks),
        "weight": _packed(weights),
        "evidence": {name: pack_floats(column) for name, column in columns.items()},
        "codes": codes.texts,
        "code": pack_shorts(why),
        "patterns": words.texts,
        "pattern": pack_shorts(says),
        "value": _packed(values),
        "limit": _packed(limits),
    }


def people(record: RoundRecord) -> list[ClientOutcome]:
    """Return the clients of a round in the order of their places."""
    attackers = set(map(str, record.attackers))

    def rank(client: ClientOutcome) -> tuple[bool, bool, float]:
        rejected = client.verdict is Verdict.REJECTED
        return str(client.client) not in attackers, rejected, -(client.weight or 0.0)

    return sorted(record.outcomes, key=rank)


def _packed(values: NDArray[np.float64]) -> str | None:
    """Return numbers as a page unpacks them; None if there is not one."""
    return None if np.isnan(values).all() else pack_floats(values)


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _numbers(reason: Reason) -> tuple[float, float]:
    """Return the numbers that go into the words of a reason; none where it has its own text."""
    return (math.nan, math.nan) if reason.text else (_number(reason.value), _number(reason.limit))


class _Table:
    """Texts, each once."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        """Return where a text stands, putting it there if need be."""
        if text not in self._places:
            self._places[text] = len(self.texts)
            self.texts.append(text)
        return self._places[text]
