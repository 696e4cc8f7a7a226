"""The strategy on a grid without a network: honest nodes, hostile ones, and none."""

import json
import math
import shutil
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from flwr.app import ArrayRecord, Message, RecordDict
from flwr.serverapp.exception import InconsistentMessageReplies
from flwr.serverapp.strategy import Bulyan, FedAvg, FedMedian, FedTrimmedAvg, Krum, MultiKrum
from tests.flower.fake_grid import FakeGrid, failing, model_in, record, reply, shifted

from datadefense import Need, NeedsError
from datadefense.core.settings import SettingsError
from datadefense.defenses import FedAvg as FedAvgDefense
from datadefense.flower import DefendedStrategy, TooFewNodesError, needs

START = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.zeros(2, np.float32)}
HONEST = {node: shifted(0.1 * node, count=10 * node, loss=float(node)) for node in range(1, 6)}


def started(nodes, defense="fedavg", rounds=1, start=START, **choices):
    """Run some rounds and return the grid and the result."""
    grid = FakeGrid(nodes)
    strategy = DefendedStrategy(defense, wait_seconds=0, **choices)
    return grid, strategy.start(grid, record(start), rounds, timeout=0)


def values(result):
    return {name: array.numpy() for name, array in result.arrays.items()}


def test_with_honest_nodes_fedavg_is_flowers_fedavg():
    _, ours = started(HONEST, rounds=3)
    theirs = FedAvg().start(FakeGrid(HONEST), record(START), 3)
    for name, array in values(theirs).items():
        assert values(ours)[name] == pytest.approx(array, abs=1e-5)
        assert values(ours)[name].dtype == array.dtype
    assert ours.train_metrics_clientapp[2]["loss"] == pytest.approx(
        theirs.train_metrics_clientapp[2]["loss"]
    )
    assert ours.train_metrics_clientapp[2]["defense-admitted"] == 5
    assert ours.evaluate_metrics_clientapp.keys() == theirs.evaluate_metrics_clientapp.keys()


def nan(message):
    return reply(message, {name: array * np.nan for name, array in model_in(message).items()})


def other_shape(message):
    return reply(message, {"w": np.ones((3, 2), np.float32), "b": np.zeros(2, np.float32)})


def missing(message):
    return reply(message, {"w": START["w"]})


def extra(message):
    return reply(message, {**model_in(message), "more": np.ones(1, np.float32)})


def other_dtype(message):
    return reply(message, {name: array.astype(float) for name, array in model_in(message).items()})


def empty(message):
    return Message(RecordDict(), reply_to=message)


def no_count(message):
    content = RecordDict({"arrays": record(model_in(message))})
    return Message(content, reply_to=message)


BAD = {
    "nan": (nan, "8 of 8 values are not finite"),
    "shape": (other_shape, "w has shape"),
    "missing": (missing, "missing tensors: 'b'"),
    "extra": (extra, "unknown tensors: 'more'"),
    "dtype": (other_dtype, "w has dtype"),
    "empty": (empty, "no arrays under 'arrays'"),
    "no count": (no_count, "num_examples is missing"),
    "no examples": (shifted(0, count=0), "num_examples must be in"),
    "less than none": (shifted(0, count=-800), "num_examples must be in"),
    "a lie": (shifted(50, count=10**9), "num_examples must be in"),
    "half an example": (shifted(0, count=0.5), "num_examples must be an integer"),
    "error": (failing(2, "out of\norder"), "error 2: out of?order"),
}


@pytest.mark.parametrize(("node", "reason"), BAD.values(), ids=list(BAD))
@pytest.mark.parametrize("defense", ["fedavg", "median", "multi-krum"])
def test_one_bad_reply_costs_nothing_but_itself(node, reason, defense, tmp_path):
    _, without = started(HONEST, defense)
    _, result = started({**HONEST, 6: node}, defense, folder=tmp_path)
    for name, array in values(without).items():
        assert np.array_equal(values(result)[name], array)
    assert result.train_metrics_clientapp[1]["defense-rejected"] == 1
    (line,) = map(json.loads, (tmp_path / "audit.jsonl").read_text().splitlines())
    *verdicts, last = [one["verdict"] for one in line["clients"]]
    out = {"multi-krum": 1}.get(defense, 0)
    kept = "voted" if defense == "median" else "counted"
    assert sorted(verdicts) == sorted([kept] * (5 - out) + ["excluded"] * out)
    assert last == "rejected"
    assert line["clients"][-1]["client"] == 6
    assert reason in line["clients"][-1]["reason"]["text"]


SHIPPED = {
    "FedAvg": FedAvg,
    "FedMedian": FedMedian,
    "FedTrimmedAvg": FedTrimmedAvg,
    "Krum": lambda: Krum(num_malicious_nodes=1),
    "MultiKrum": lambda: MultiKrum(num_malicious_nodes=1, num_nodes_to_select=4),
    "Bulyan": lambda: Bulyan(num_malicious_nodes=0),
}


@pytest.mark.parametrize("kind", ["missing", "empty", "no count"])
@pytest.mark.parametrize("strategy", SHIPPED.values(), ids=list(SHIPPED))
def test_one_malformed_reply_ends_a_run_of_flowers_own_strategies(strategy, kind):
    """So that one knows what the gate is for."""
    nodes = {node: shifted(0.1 * node, loss=1.0) for node in range(1, 6)}
    strategy().start(FakeGrid(nodes), record(START), 1)
    with pytest.raises(InconsistentMessageReplies):
        strategy().start(FakeGrid({**nodes, 6: BAD[kind][0]}), record(START), 1)


def test_flowers_own_strategy_takes_nan_for_the_model():
    result = FedAvg().start(FakeGrid({**HONEST, 6: shifted(math.nan, loss=1.0)}), record(START), 1)
    assert math.isnan(values(result)["b"][0])


def test_flowers_log_shows_what_happens(caplog):
    """A logger that is not below Flower's is not streamed to who runs the app."""
    caplog.set_level("INFO", "flwr")
    started({**HONEST, 6: nan}, "median")
    said = [one.getMessage() for one in caplog.records if one.name == "flwr.datadefense"]
    assert any(text.startswith("defense: Median(") for text in said)
    assert any("round 1: node 6 rejected: 8 of 8 values" in text for text in said)


def test_what_a_round_cost_is_written_down(tmp_path):
    _, result = started(HONEST, "median", folder=tmp_path)
    (line,) = map(json.loads, (tmp_path / "audit.jsonl").read_text().splitlines())
    assert 0 < line["cost"]["seconds"] < 60
    assert line["cost"]["seconds"] == result.train_metrics_clientapp[1]["defense-seconds"]
    assert line["cost"]["peak_memory_mb"] is None or line["cost"]["peak_memory_mb"] > 10


def test_an_error_about_a_lost_node_is_put_down_to_that_node(tmp_path):
    def lost(message):
        answer = failing(5, "no heartbeat")(message)
        answer.metadata.__dict__["_src_node_id"] = 1
        return answer

    started({7: lost, 8: shifted(1), 9: shifted(1)}, folder=tmp_path)
    (line,) = map(json.loads, (tmp_path / "audit.jsonl").read_text().splitlines())
    assert {one["client"]: one["verdict"] for one in line["clients"]}[7] == "rejected"


def test_nobody_answers_and_the_model_stays():
    _, result = started({1: None, 2: None, 3: nan})
    assert np.array_equal(values(result)["w"], START["w"])
    assert result.train_metrics_clientapp[1]["defense-admitted"] == 0


def test_strange_metrics_do_not_end_the_round():
    odd = {
        6: shifted(0.1, loss=math.inf),
        7: shifted(0.1, other=1.0),
        8: shifted(0.1, loss=[1.0, 2.0]),
    }
    _, result = started({**HONEST, **odd})
    metrics = result.train_metrics_clientapp[1]
    assert metrics["defense-admitted"] == 8
    assert metrics["loss"] == pytest.approx(sum(n * n for n in range(1, 6)) / 15)
    assert math.isfinite(result.evaluate_metrics_clientapp[1]["loss"])


def test_integer_and_batch_norm_arrays_by_policy():
    start = {**START, "running_mean": np.ones(2, np.float32), "steps": np.int64(3)}
    with pytest.raises(ValueError, match="buffers"):
        started(HONEST, start=start, buffers="refuse")
    _, kept = started(HONEST, start=start, buffers="keep")
    assert values(kept)["running_mean"].tolist() == [1, 1]
    assert values(kept)["steps"] == 3
    assert values(kept)["steps"].dtype == np.int64
    for policy in ({}, {"buffers": "aggregate"}):
        _, mixed = started(HONEST, start=start, **policy)
        assert values(mixed)["running_mean"][0] > 1.2
        assert values(mixed)["steps"] == 3


def test_fewer_nodes_than_wanted_but_enough():
    inner = FedAvg(min_available_nodes=10, min_train_nodes=10)
    _, result = started(HONEST, inner=inner, min_nodes=3)
    assert result.train_metrics_clientapp[1]["defense-admitted"] == 5
    assert inner.min_available_nodes == 10


def test_too_few_nodes_end_the_run_with_a_sentence():
    with pytest.raises(TooFewNodesError, match=r"1 nodes are connected after 0 s, min_nodes is 2"):
        started({1: shifted(1)})


def test_nodes_that_come_late_are_waited_for(monkeypatch):
    grid = FakeGrid({1: shifted(1)})

    def sleep(_):
        grid.nodes[2] = shifted(1)

    monkeypatch.setattr("datadefense.flower.nodes.time.sleep", sleep)
    result = DefendedStrategy("fedavg", wait_seconds=60).start(grid, record(START), 1)
    assert result.train_metrics_clientapp[1]["defense-admitted"] == 2


def test_a_run_that_was_cut_off_goes_on_to_the_same_bits(tmp_path):
    """Sparsefed carries a memory from round to round."""
    _, whole = started(HONEST, "sparsefed", rounds=6)
    started(HONEST, "sparsefed", rounds=2, folder=tmp_path)
    grid, rest = started(HONEST, "sparsefed", rounds=6, folder=tmp_path)
    for name, array in values(whole).items():
        assert np.array_equal(values(rest)[name], array)
    assert sorted(rest.train_metrics_clientapp) == [3, 4, 5, 6]
    assert set(grid.rounds) == {3, 4, 5, 6}
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [line["round"] for line in lines] == [1, 2, 3, 4, 5, 6]
    _, done = started(HONEST, "sparsefed", rounds=6, folder=tmp_path)
    assert np.array_equal(values(done)["w"], values(whole)["w"])


def test_evaluation_on_the_server_gets_the_rounds_own_numbers(tmp_path):
    seen = []

    def evaluate(index, _):
        seen.append(index)

    for rounds in (1, 3):
        DefendedStrategy("fedavg", folder=tmp_path, wait_seconds=0).start(
            FakeGrid(HONEST), record(START), rounds, evaluate_fn=evaluate
        )
    assert seen == [0, 1, 1, 2, 3]


def test_the_node_id_does_not_matter():
    _, one = started(HONEST, "multi-krum")
    _, two = started({2**60 + node: how for node, how in HONEST.items()}, "multi-krum")
    assert np.array_equal(values(one)["w"], values(two)["w"])


def test_what_the_inner_strategy_chooses_is_kept():
    inner = FedAvg(fraction_train=0.4, fraction_evaluate=0.0)
    grid, result = started(HONEST, inner=inner)
    assert len(grid.asked) == 2
    assert result.evaluate_metrics_clientapp == {}


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"defense": "krumm"}, "did you mean 'krum'"),
        ({"min_nodes": 0}, "min_nodes must be >= 1"),
        ({"wait_seconds": -1.0}, "wait_seconds must be >= 0"),
        ({"max_examples": 0}, "max_examples must be >= 1"),
    ],
)
def test_bad_choices(choices, message):
    with pytest.raises(SettingsError, match=message):
        DefendedStrategy(**{"defense": "fedavg", **choices})


def test_datadefense_needs_a_model_and_its_set():
    with pytest.raises(ValueError, match="needs a model and a defense set"):
        started(HONEST, "datadefense")


def test_what_is_missing_is_said_when_the_strategy_is_made():
    with pytest.raises(NeedsError) as caught:
        DefendedStrategy("nnm+fltrust")
    assert str(caught.value) == (
        "nnm+fltrust needs a model and clean examples on the server: "
        "DefendedStrategy(model=..., clean=...), see docs/defenses.md"
    )


@dataclass(frozen=True, slots=True)
class ById(FedAvgDefense):
    """A rule that knows clients again."""

    name: ClassVar[str] = "by-id"
    needs: ClassVar[Need] = Need.CLIENT_IDENTITY


def test_a_defense_that_knows_nodes_by_their_ids_is_warned_of(monkeypatch):
    said = []
    monkeypatch.setattr(needs.logger, "warning", lambda text, *args: said.append(text % args))
    DefendedStrategy("fedavg")
    assert not said
    DefendedStrategy(ById())
    assert said[0].startswith("by-id knows clients by their node ids: a node that connects again")


def test_arrays_are_what_the_record_holds():
    assert isinstance(started(HONEST)[1].arrays, ArrayRecord)
    assert torch.is_tensor(torch.from_numpy(values(started(HONEST)[1])["w"]))


def test_a_first_round_whose_state_was_not_kept_is_not_in_the_trail_twice(tmp_path):
    (tmp_path / "audit.jsonl").write_text('{"round": 1, "clients": []}\n')
    started(HONEST, rounds=1, folder=tmp_path)
    (line,) = map(json.loads, (tmp_path / "audit.jsonl").read_text().splitlines())
    assert line["clients"]


def test_the_seed_is_secret_unless_given_and_stays_the_same_in_a_run(tmp_path):
    def noise(folder=None, rounds=1, **choices):
        return values(started(HONEST, "weak-dp", rounds=rounds, folder=folder, **choices)[1])["w"]

    assert not np.array_equal(noise(), noise())
    assert np.array_equal(noise(seed=7), noise(seed=7))
    noise(tmp_path / "a", 1)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert np.array_equal(noise(tmp_path / "a", 2), noise(tmp_path / "b", 2))


def test_whom_bulyan_leaves_out_is_excluded_in_the_trail(tmp_path):
    eight = {node: shifted(0.1 * node) for node in range(1, 9)}
    _, result = started(eight, "bulyan", folder=tmp_path)
    (line,) = map(json.loads, (tmp_path / "audit.jsonl").read_text().splitlines())
    excluded = [one for one in line["clients"] if one["verdict"] == "excluded"]
    assert len(excluded) == 2
    for one in excluded:
        assert one["reason"]["code"] == "repeated_krum"
        assert one["reason"]["value"] == one["evidence"]["score"]
    assert result.train_metrics_clientapp[1]["defense-excluded"] == 2


def test_a_round_whose_state_was_not_kept_is_not_in_the_trail_twice(tmp_path):
    started(HONEST, rounds=2, folder=tmp_path)
    trail = tmp_path / "audit.jsonl"
    whole = trail.read_text()
    trail.write_text(
        whole + '{"round": 3, "clients": []}\n{"round": 4, "no'
    )  # killed while writing
    started(HONEST, rounds=3, folder=tmp_path)
    lines = [json.loads(line) for line in trail.read_text().splitlines()]
    assert [line["round"] for line in lines] == [1, 2, 3]
    assert trail.read_text().startswith(whole)
    assert lines[2]["clients"]
