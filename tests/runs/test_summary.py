from dataclasses import replace

import pytest
from tests.records import detector_of, record_of

from datadefense.runs.summary import (
    attacker_weights,
    detector_hits,
    evasion_budget,
    honest_weights,
    lifespan,
    seconds,
    seconds_in_all,
    success_rates,
    tail_mean,
)


def record(index, asr=None, weights=(0.5, 0.5), clients=("a", "evil"), attackers=("evil",)):
    return record_of(
        index,
        clients,
        attackers,
        weights,
        ma_percent=asr,
        asr_percent=asr,
        seconds={"training": index},
    )


def test_the_detectors_hits_are_counted_by_id():
    told = [detector_of([0.1, 0.2, 0.9, 0.8], marked) for marked in ([2], [2, 3], [0])]
    records = [replace(record(1), detector=one) for one in told]
    assert detector_hits(records, frozenset({"2", "3"})) == 50
    assert detector_hits(records, frozenset()) is None
    assert detector_hits([record(1)], frozenset({"2"})) is None


def test_means_are_over_the_last_ten():
    assert tail_mean([100.0] * 5 + [10.0] * 10) == 10.0
    assert tail_mean([1.0, 3.0]) == 2.0


def test_weights_of_attackers_and_of_the_others():
    records = [
        record(1, weights=(1.0, 0.0)),
        record(2, weights=(0.4, 0.6)),
        record(3, weights=(1.0,), clients=("a",)),
        record(4, weights=(0.0, 1.0), clients=("a", "b"), attackers=()),
        record(5, weights=None),
    ]
    assert attacker_weights(records) == [0.0, 0.6, 0.0]
    assert honest_weights(records) == [1.0, 0.4, 1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("rates", "last", "expected"),
    [
        ([80, 90, 60, 45, 10], 2, 2),
        ([80, 90, 60, 50, 46], 2, None),
        ([80, 90, 60], None, None),
        ([80, 90], 2, None),
    ],
)
def test_lifespan(rates, last, expected):
    assert lifespan([record(i + 1, rate) for i, rate in enumerate(rates)], last) == expected


def test_the_evasion_budget_is_a_mean_over_rounds_that_have_one():
    told = [{"evasion_budget": 2.0, "step": 1.0}, {}, {"evasion_budget": 0.0, "step": 0.0}]
    records = [replace(record(index + 1), attack=facts) for index, facts in enumerate(told)]
    assert evasion_budget(records) == 1.0
    assert evasion_budget([record(1), record(2)]) is None


def test_seconds_and_rates():
    records = [record(1, 10.0), record(2), record(3, 30.0)]
    assert seconds(records, "training") == 2.0
    assert seconds(records, "defense") == 0.0
    assert success_rates(records) == [10.0, 30.0]


def test_seconds_of_the_attack_are_a_part_of_training():
    times = {"training": 4.0, "attack": 3.0, "defense": 2.0, "evaluation": 1.0}
    attacked, calm = (replace(record(1), seconds=times | {"attack": s}) for s in (3.0, 0.0))
    assert seconds([attacked, calm, calm], "attack") == 3.0
    assert seconds([calm], "attack") == 0.0
    assert seconds_in_all(attacked) == seconds_in_all(calm) == 7.0
    assert seconds_in_all(record(2)) == 2.0
