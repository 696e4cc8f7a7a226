import base64
import math
import struct

import pytest
from tests.records import record_of
from tests.report.synthetic import HOSTILE, Size, records_of
from tests.report.test_detector_data import bits
from tests.report.test_packing import unpack_floats

from datadefense.core.outcomes import Verdict
from datadefense.core.reasons import Reason, pattern
from datadefense.report.client_data import client_data, people
from datadefense.simulation.rounds import RoundRecord


def shorts(text):
    raw = base64.b64decode(text)
    return struct.unpack(f"<{len(raw) // 2}H", raw)


def floats(text, count):
    return unpack_floats(text) if text else [math.nan] * count


def unpacked(data):
    """Return the page's view by round and name."""
    found = {}
    verdicts = base64.b64decode(data["verdict"])
    count = len(verdicts)
    attacks = bits(data["attacks"], count)
    names, codes, patterns = (shorts(data[key]) for key in ("name", "code", "pattern"))
    weights, values, limits = (floats(data[key], count) for key in ("weight", "value", "limit"))
    evidence = {name: unpack_floats(text) for name, text in data["evidence"].items()}
    for place, verdict in enumerate(verdicts):
        if not verdict:
            continue
        reason = None
        if codes[place]:
            reason = (
                data["codes"][codes[place] - 1],
                data["patterns"][patterns[place]],
                values[place],
                limits[place],
            )
        key = (data["rounds"][place // data["width"]], data["names"][names[place]])
        columns = {name: column[place] for name, column in evidence.items()}
        found[key] = (
            data["verdicts"][verdict - 1],
            attacks[place],
            weights[place],
            columns,
            reason,
        )
    return found


def test_every_client_of_every_round_is_in_with_all_that_is_known():
    records = records_of(Size(rounds=11))
    found = unpacked(client_data(records, 10_000))
    assert len(found) == sum(len(record.outcomes) for record in records)
    for record in records:
        for outcome in record.outcomes:
            shown = found[record.round, str(outcome.client)]
            verdict, attacks, weight, evidence, reason = shown
            assert verdict == outcome.verdict
            assert attacks == (outcome.client in record.attackers)
            assert weight == pytest.approx(outcome.weight, rel=1e-4)
            assert (reason is None) == (outcome.reason is None)
            if reason is not None:
                code, words, value, limit = reason
                assert (code, words) == (outcome.reason.code, pattern(outcome.reason))
                given = math.nan if outcome.reason.value is None else outcome.reason.value
                assert value == pytest.approx(given, rel=1e-4, nan_ok=True)
                assert math.isnan(limit)
            for name, value in outcome.evidence.items():
                assert evidence[name] == pytest.approx(value, rel=1e-4, abs=1e-12)


def test_attackers_come_first_then_the_heaviest_and_the_rejected_last():
    record = record_of(
        1,
        [3, "evil-1", 5, 9],
        ["evil-1", "evil-2"],
        [0.2, 0.0, 0.5, 0.3],
        evidence={"norm": [1.0, 2.0, 3.0, 4.0]},
        reasons=[None, Reason("norm", 2.0, 1.5), None, None],
        rejected=[("late", "too {value}"), ("evil-2", "NaN")],
    )
    order = people(record)
    assert [one.client for one in order] == ["evil-1", "evil-2", 5, 9, 3, "late"]
    assert [one.verdict for one in order] == [
        Verdict.EXCLUDED,
        Verdict.REJECTED,
        Verdict.COUNTED,
        Verdict.COUNTED,
        Verdict.COUNTED,
        Verdict.REJECTED,
    ]
    found = unpacked(client_data([record], 100))
    assert found[1, "evil-1"][4] == ("norm", "norm {value}, clipped to {limit}", 2.0, 1.5)
    code, words, value, limit = found[1, "late"][4]
    assert (code, words) == ("rejected", "too {value}")
    assert math.isnan(value)
    assert math.isnan(limit)


def test_rules_without_weights_and_rounds_without_anybody():
    assert client_data([], 100) is None
    assert client_data([RoundRecord(1, report={"held": "x"})], 100) is None
    data = client_data(records_of(Size(rounds=2), defense="median"), 100)
    assert data["weight"] is None
    assert data["evidence"] == {}
    assert {one[0] for one in unpacked(data).values()} == {"voted"}


def test_long_runs_are_thinned_out_but_keep_attacked_rounds():
    records = records_of(Size(rounds=300, clients=10, attack_every=50))
    data = client_data(records, 1000)
    assert len(data["rounds"]) <= 101
    assert {1, 51, 101, 151, 201, 251, 300} <= set(data["rounds"])


def test_long_and_unprintable_names_are_cut():
    reasons = [Reason("told", text="\x1b" * 999)]
    record = record_of(1, ["a" * 500 + "\n"], [], [1.0], reasons=reasons)
    (name,), (words,) = (client_data([record], 10)[key] for key in ("names", "patterns"))
    assert len(name) < 100
    assert len(words) < 350
    assert "\x1b" not in words
    assert HOSTILE in client_data(records_of(Size(rounds=1), hostile=True), 99)["names"]
