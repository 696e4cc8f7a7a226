"""Averages of metrics: whoever's form or count is wrong is left out, and nothing ends the run."""

import math

import pytest
from flwr.app import Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg
from tests.flower.fake_grid import FakeGrid, failing, model_in, record, shifted
from tests.flower.test_strategy import HONEST, START, started

from datadefense.flower import DefendedStrategy
from datadefense.flower.metrics import averaged

TRAIN_LOSS = sum(10 * n * n for n in range(1, 6)) / sum(10 * n for n in range(1, 6))


def sending(*records, arrays=True):
    """A node whose reply has these records beside the model as it came."""

    def node(message):
        given = {name: MetricRecord(values) for name, values in records}
        if arrays:
            given["arrays"] = record(model_in(message))
        return Message(RecordDict(given), reply_to=message)

    return node


STRANGE = {
    "another record's name": sending(("other", {"num-examples": 10, "loss": 1.0})),
    "two records": sending(("metrics", {"num-examples": 10, "loss": 1.0}), ("b", {"x": 1})),
    "no record": sending(),
    "2^62 examples": shifted(0, count=2**62, loss=9.0),
    "a million and one": shifted(0, count=1_000_001, loss=9.0),
    "1e300 examples": shifted(0, count=1e300, loss=9.0),
    "half an example": shifted(0, count=0.5, loss=9.0),
    "no examples": shifted(0, count=0, loss=9.0),
    "less than none": shifted(0, count=-50, loss=9.0),
    "infinite examples": shifted(0, count=math.inf, loss=9.0),
    "a list of examples": shifted(0, count=[10], loss=9.0),
    "a loss of 5,000 digits": shifted(0, loss=10**5000),
    "a loss that is a list": shifted(0, loss=[1.0, 2.0]),
    "an empty list": shifted(0, loss=[]),
    "no loss": shifted(0),
    "nan": shifted(0, loss=math.nan),
    "an error": failing(),
}


@pytest.mark.parametrize("node", STRANGE.values(), ids=list(STRANGE))
def test_a_strange_reply_is_not_in_the_averages(node):
    _, result = started({**HONEST, 6: node}, rounds=2)
    for index in (1, 2):
        assert result.evaluate_metrics_clientapp[index]["loss"] == pytest.approx(TRAIN_LOSS)
        assert result.train_metrics_clientapp[index]["loss"] == pytest.approx(TRAIN_LOSS)


def test_a_count_within_bounds_is_in_the_averages():
    _, result = started({**HONEST, 6: shifted(0, count=1_000_000, loss=9.0)})
    assert result.evaluate_metrics_clientapp[1]["loss"] == pytest.approx(9.0, abs=1e-2)


def raising(*_):
    raise ZeroDivisionError("a\x1b[31mb")


@pytest.mark.parametrize("bad", [raising, lambda *_: None, lambda *_: "loss", lambda *_: {"a": ""}])
def test_a_metric_function_that_fails_costs_the_metrics_only(bad, caplog):
    inner = FedAvg(train_metrics_aggr_fn=bad, evaluate_metrics_aggr_fn=bad)
    _, result = started(HONEST, rounds=2, inner=inner)
    assert result.train_metrics_clientapp[2]["defense-admitted"] == 5
    assert result.evaluate_metrics_clientapp == {}
    if bad is raising:
        assert "evaluations of round 2 are not averaged: ZeroDivisionError: a?[31mb" in caplog.text


class Fragile(FedAvg):
    def aggregate_evaluate(self, server_round, replies):
        raise KeyError("whatever")


def test_an_inner_strategy_whose_evaluation_raises_does_not_end_the_run():
    _, result = started(HONEST, rounds=2, inner=Fragile())
    assert sorted(result.train_metrics_clientapp) == [1, 2]
    assert result.evaluate_metrics_clientapp == {}


def test_what_the_metric_function_returns_stays_its_own():
    shared = MetricRecord({"loss": 1.0})
    inner = FedAvg(train_metrics_aggr_fn=lambda *_: shared)
    _, result = started(HONEST, inner=inner)
    assert result.train_metrics_clientapp[1]["loss"] == 1.0
    assert dict(shared) == {"loss": 1.0}


def test_two_evaluations_of_one_node_count_once():
    class Twice(FakeGrid):
        def pull_messages(self, message_ids):
            found = super().pull_messages(message_ids)
            return [*found, *found]

    result = DefendedStrategy("fedavg").start(Twice(HONEST), record(START), 1, timeout=0)
    assert result.evaluate_metrics_clientapp[1]["loss"] == pytest.approx(TRAIN_LOSS)
    assert result.train_metrics_clientapp[1]["defense-rejected"] == 0


def test_what_is_no_record_is_no_average():
    assert averaged("words", lambda: MetricRecord({"a": 1.0})) == MetricRecord({"a": 1.0})
    assert averaged("words", lambda: 3) is None
