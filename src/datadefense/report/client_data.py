"""What a page needs of the clients: who was there, with what weight, evidence and reason.

A matrix with a row a round and a column a place: attackers first, then the others from the heaviest
to the lightest, and at the end of either group those whom the gate turned away.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from datadefense.core.foreign import sanitize
from datadefense.report.downsample import shown_rounds
from datadefense.report.packing import pack_floats, pack_levels, pack_shorts
from datadefense.runs.record_fields import reasons, rejected
from datadefense.simulation.rounds import RoundRecord

HONEST, ATTACKS, REJECTED = 1, 2, 4
"""What a place's kind is the sum of; 0 is a place where nobody was."""
LONGEST = 80
"""Characters of a client's name that are shown."""


@dataclass(frozen=True, slots=True)
class Client:
    """One client in one round; ``reason`` is why it lost weight or was turned away, if it was."""

    name: str
    kind: int
    weight: float = math.nan
    reason: str = ""
    evidence: Mapping[str, float] = field(default_factory=dict)


def client_data(records: Sequence[RoundRecord], most_places: int) -> dict[str, Any] | None:
    """Return the clients of all rounds as plain values, or None if there never was any.

    Args:
        records: the rounds.
        most_places: how many places in all a page can hold; of longer runs not all rounds are in.
    """
    width = max((_places(record) for record in records), default=0)
    if not width:
        return None
    shown = shown_rounds(records, most_places // width)
    names, texts = _Table(), _Table()
    evidence = list(dict.fromkeys(name for record in shown for name in record.evidence))
    shape = (len(shown), width)
    kinds, who, why = (np.zeros(shape, dtype=int) for _ in range(3))
    weights = np.full(shape, math.nan)
    columns = {name: np.full(shape, math.nan) for name in evidence}
    for row, record in enumerate(shown):
        for place, client in enumerate(people(record)):
            kinds[row, place] = client.kind
            who[row, place] = names.place(client.name)
            why[row, place] = _reason_code(client, evidence, texts)
            weights[row, place] = client.weight
            for name, value in client.evidence.items():
                columns[name][row, place] = value
    return {
        "rounds": [record.round for record in shown],
        "width": width,
        "names": names.texts,
        "name": pack_shorts(who),
        "kind": pack_levels(kinds, 0, 254),
        "weight": None if np.isnan(weights).all() else pack_floats(weights),
        "evidence": {name: pack_floats(column) for name, column in columns.items()},
        "reasons": texts.texts,
        "reason": pack_shorts(why),
    }


def people(record: RoundRecord) -> list[Client]:
    """Return the clients of a round in the order of their places."""
    attackers = set(map(str, record.attackers))
    why = reasons(record)
    everybody: list[Client] = []
    for place, client in enumerate(record.clients):
        evidence = {name: _number(values[place]) for name, values in record.evidence.items()}
        weight = _number(None if record.weights is None else record.weights[place])
        kind = ATTACKS if str(client) in attackers else HONEST
        everybody.append(Client(_name(client), kind, weight, why[place], evidence))
    for name, reason in rejected(record):
        kind = REJECTED + (ATTACKS if name in attackers else HONEST)
        everybody.append(Client(_name(name), kind, reason=reason))
    return sorted(everybody, key=_rank)


def _places(record: RoundRecord) -> int:
    return len(record.clients) + len(rejected(record))


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _rank(client: Client) -> tuple[bool, bool, float]:
    weight = 0.0 if math.isnan(client.weight) else -client.weight
    return not client.kind & ATTACKS, bool(client.kind & REJECTED), weight


def _name(client: object) -> str:
    return sanitize(str(client), LONGEST)


def _reason_code(client: Client, evidence: Sequence[str], texts: "_Table") -> int:
    """Return 0 for none, the number of the evidence that the reason repeats, or that of a text.

    DataDefense's reasons are the name of a fault and its value, which the page has already.
    """
    if not client.reason:
        return 0
    name, _, value = client.reason.partition(" ")
    if name in client.evidence and f"{client.evidence[name]:.3g}" == value:
        return 1 + evidence.index(name)
    return 1 + len(evidence) + texts.place(client.reason)


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
