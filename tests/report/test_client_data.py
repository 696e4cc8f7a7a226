import base64
import math
import struct

import pytest
from tests.report.synthetic import HOSTILE, Size, records_of
from tests.report.test_packing import unpack_floats

from datadefense.report.client_data import (
    ATTACKS,
    HONEST,
    REJECTED,
    client_data,
    people,
)
from datadefense.simulation.rounds import RoundRecord


def shorts(text):
    raw = base64.b64decode(text)
    return struct.unpack(f"<{len(raw) // 2}H", raw)


def unpacked(data):
    """Return the page's view as {(round, name): (kind, weight, evidence, reason)}."""
    found = {}
    names, kinds = shorts(data["name"]), base64.b64decode(data["kind"])
    reasons = shorts(data["reason"])
    weights = unpack_floats(data["weight"]) if data["weight"] else [math.nan] * len(names)
    evidence = {name: unpack_floats(text) for name, text in data["evidence"].items()}
    columns = list(evidence)
    for place, kind in enumerate(kinds):
        if not kind:
            continue
        code = reasons[place]
        if code > len(columns):
            reason = data["reasons"][code - 1 - len(columns)]
        else:
            reason = f"{columns[code - 1]} {evidence[columns[code - 1]][place]:.3g}" if code else ""
        key = (data["rounds"][place // data["width"]], data["names"][names[place]])
        values = {name: column[place] for name, column in evidence.items()}
        found[key] = (kind, weights[place], values, reason)
    return found


def test_every_client_of_every_round_is_in_with_all_that_is_known():
    records = records_of(Size(rounds=11))
    found = unpacked(client_data(records, 10_000))
    assert len(found) == sum(len(record.clients) for record in records)
    for record in records:
        for place, client in enumerate(record.clients):
            kind, weight, evidence, reason = found[record.round, str(client)]
            assert kind == (ATTACKS if client in record.attackers else HONEST)
            assert weight == pytest.approx(record.weights[place], rel=1e-4)
            name, _, value = record.report["reasons"][place].partition(" ")
            assert reason.partition(" ")[0] == name
            assert not name or float(reason.split()[1]) == pytest.approx(float(value), rel=1e-2)
            for name, values in record.evidence.items():
                assert evidence[name] == pytest.approx(values[place], rel=1e-4, abs=1e-12)


def test_attackers_come_first_then_the_heaviest_and_the_rejected_last():
    rejected = [{"client": "late", "reason": "too late"}, {"client": "evil-2", "reason": "NaN"}]
    record = RoundRecord(
        1,
        [3, "evil-1", 5, 9],
        ["evil-1", "evil-2"],
        [0.2, 0.0, 0.5, 0.3],
        {"norm": [1.0, 2.0, 3.0, 4.0]},
        {"rejected": rejected},
        None,
        None,
    )
    order = people(record)
    assert [client.name for client in order] == ["evil-1", "evil-2", "5", "9", "3", "late"]
    assert [client.kind for client in order] == [
        ATTACKS,
        ATTACKS + REJECTED,
        HONEST,
        HONEST,
        HONEST,
        HONEST + REJECTED,
    ]
    assert order[1].reason == "NaN"
    assert math.isnan(order[1].weight)
    assert unpacked(client_data([record], 100))[1, "late"][3] == "too late"


def test_rules_without_weights_and_rounds_without_anybody():
    assert client_data([], 100) is None
    assert client_data([RoundRecord(1, [], [], [], {}, {"held": "x"}, None, None)], 100) is None
    data = client_data(records_of(Size(rounds=2), defense="median"), 100)
    assert data["weight"] is None
    assert data["evidence"] == {}


def test_long_runs_are_thinned_out_but_keep_attacked_rounds():
    records = records_of(Size(rounds=300, clients=10, attack_every=50))
    data = client_data(records, 1000)
    assert len(data["rounds"]) <= 101
    assert {1, 51, 101, 151, 201, 251, 300} <= set(data["rounds"])


def test_long_and_unprintable_names_are_cut():
    record = RoundRecord(
        1, ["a" * 500 + "\n"], [], [1.0], {}, {"reasons": ["\x1b" * 999]}, 1.0, 1.0
    )
    (name,), (reason,) = (client_data([record], 10)[key] for key in ("names", "reasons"))
    assert len(name) < 100
    assert len(reason) < 250
    assert "\x1b" not in reason
    assert HOSTILE in client_data(records_of(Size(rounds=1), hostile=True), 99)["names"]
