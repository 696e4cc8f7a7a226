from datadefense.runs.metrics import NAMES, figures_of
from datadefense.simulation.rounds import RoundRecord


def test_a_round_with_all_of_them():
    record = RoundRecord(
        round=7,
        clients=["a", 1, 2],
        attackers=["a", "b"],
        weights=[0.25, 0.75, 0.0],
        evidence={},
        report={"rejected": [{"client": "b", "reason": "NaN"}]},
        ma_percent=90.0,
        asr_percent=2.0,
        seconds={"training": 1.5, "attack": 0.5, "defense": 0.25, "evaluation": 0.125},
    )
    expected = [90.0, 2.0, 3, 2, 0.25, 1, 1, 1.5, 0.5, 0.25, 0.125]
    assert figures_of(record) == dict(zip(NAMES, expected, strict=True))


def test_what_a_round_does_not_have_is_left_out():
    record = RoundRecord(1, [4], [], None, {}, {}, None, None)
    assert figures_of(record) == {"clients": 1, "attackers": 0, "rejected": 0}
