"""Hostile replies of Flower nodes, to training and to evaluation, among three honest nodes."""

import contextlib
import json

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from tests.flower.fake_grid import FakeGrid, model_in, record, shifted
from tests.hostile.engine import Target
from tests.hostile.submissions import check_shown

from datadefense.flower import DefendedStrategy

START = {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.zeros(2, np.float32)}
HONEST = {node: shifted(0.1 * node, count=10 * node, loss=float(node)) for node in (1, 2, 3)}
ROUNDS = 2
COUNTS = (10, 1, 0, -5, 2**62, 1.0, 0.5, float("nan"), float("inf"), [1, 2], 10**6)
METRICS = (1.0, float("nan"), float("-inf"), 1e308, -1e308, 2**62, [1.0, 2.0], [], [float("nan")])
NAMES = ("metrics", "other", "\x1b[2J\n", "arrays2", "x" * 500)
KEYS = ("num-examples", "loss", "accuracy", "\x1b[2J\nforged", "x" * 300, "more")


def forged(random):
    """Return an array whose own description lies."""
    return {
        "dtype": random.choice(("float32", "object", "float64", "<U4", "O8", "M8[s]", "\x1b[2J")),
        "shape": random.choice(([2, 3], [3, 2], [], [-1], [2**40], [0], [1] * 40)),
        "stype": random.choice(("numpy.ndarray", "pickle", "", "x" * 400)),
        "data": random.randbytes(random.choice((0, 1, 24, 152, 300))).hex(),
    }


def draw(random):
    """One part a hostile node: what it replies with to training and to evaluation."""
    parts = []
    for _ in range(random.randint(1, 6)):
        parts.append([reply_plan(random), reply_plan(random)])
    return random.choice(("fedavg", "median", "multi-krum", "rfa")), parts


def reply_plan(random):
    kind = random.choice(("model", "model", "nan", "huge", "forged", "none", "extra", "other name"))
    records = [
        [random.choice(NAMES), [[random.choice(KEYS), random.randrange(len(METRICS))]
                                for _ in range(random.randint(0, 4))]]
        for _ in range(random.choice((0, 1, 1, 1, 1, 2, 3)))
    ]  # fmt: skip
    return {
        "kind": kind,
        "array": forged(random),
        "records": records,
        "count": random.choice((None, *range(len(COUNTS)))),
        "how": random.choice(("content",) * 8 + ("error", "silent", "configs")),
    }


def node(plans):
    """Return a node that replies by plan; the first message of a round asks for training."""

    def answer(message):
        plan = plans[message.metadata.message_type.startswith("evaluate")]
        if plan["how"] == "error":
            return Message(Error(2**31 - 1, "\x1b[2J" + "x" * 5_000), reply_to=message)
        if plan["how"] == "silent":
            return Message(RecordDict(), reply_to=message)
        return Message(content(plan, message), reply_to=message)

    return answer


def content(plan, message):
    found = RecordDict()
    arrays = arrays_of(plan, model_in(message) if "arrays" in message.content else START)
    if arrays is not None:
        found["models" if plan["kind"] == "other name" else "arrays"] = arrays
    for place, (name, pairs) in enumerate(plan["records"]):
        metrics = {key: METRICS[at] for key, at in pairs}
        if place == 0 and plan["count"] is not None:
            metrics["num-examples"] = COUNTS[plan["count"]]
        with contextlib.suppress(TypeError, ValueError):  # Flower refuses it on the node
            found[name] = MetricRecord(metrics)
    if plan["how"] == "configs":
        found["config"] = ConfigRecord({"a": "\x1b[2J"})
    return found


def arrays_of(plan, model):
    kind = plan["kind"]
    if kind == "none":
        return None
    if kind == "nan":
        return record({name: array * np.nan for name, array in model.items()})
    if kind == "huge":
        return record({name: np.full_like(array, 3e38) for name, array in model.items()})
    if kind == "extra":
        return record({**model, "\x1b[2J" * 50: np.zeros(1)})
    if kind == "forged":
        lie = plan["array"]
        array = Array(lie["dtype"], tuple(lie["shape"]), lie["stype"], bytes.fromhex(lie["data"]))
        return ArrayRecord({"w": array, "b": Array(np.zeros(2, np.float32))})
    return record({name: array + np.float32(0.5) for name, array in model.items()})


def check(setting, parts, folder):
    nodes = {**HONEST, **{10 + place: node(plans) for place, plans in enumerate(parts)}}
    lines = []
    strategy = DefendedStrategy(
        setting, wait_seconds=0, folder=folder / "flower", tell=lines.append, seed=1
    )
    result = strategy.start(FakeGrid(nodes), record(START), ROUNDS)
    for array in result.arrays.values():
        assert np.isfinite(array.numpy()).all()
    trail = (folder / "flower" / "audit.jsonl").read_text().splitlines()
    assert len(trail) == ROUNDS
    for line in trail:
        told = json.loads(line, parse_constant=forbidden)
        assert {1, 2, 3} <= {
            one["client"] for one in told["clients"] if one["verdict"] != "rejected"
        }
        for one in told["clients"]:
            if one["verdict"] == "rejected":
                check_shown(one["reason"]["text"])
    for line in lines:
        json.dumps(line, allow_nan=False)


def forbidden(name):
    raise ValueError(f"{name} is not JSON")


TARGETS = (Target("flower-replies", draw, check, seconds=20, times=2 * ROUNDS),)
