"""The model that is sent: the global one, or what a defense makes of it; on either engine."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from tests.flower.fake_grid import FakeGrid, model_in, record, shifted
from tests.simulation.tiny import tiny_federation

from datadefense import Aggregate, Defense, Layout, Pipeline, Promise, Server, create
from datadefense.core.defend import model_to_send
from datadefense.defenses import FedAvg
from datadefense.flower import DefendedStrategy
from datadefense.preaggregators import Clip
from datadefense.schedules import Never
from datadefense.simulation.pool import Pool
from datadefense.simulation.rounds import begin, simulate
from datadefense.testing import BrokenLawError, check_defense, toy_round, toy_server


@dataclass(frozen=True, slots=True)
class Marked(Defense[int]):
    """Send the model with a mark on its first value; take the mark off what comes back."""

    mark: float = 100.0
    fault: str = ""
    name: ClassVar[str] = "marked"
    promises: ClassVar[Promise] = Promise.NONE

    def init(self, server, params):
        return 0

    def sent(self, state, params, server, round_index):
        if self.fault == "writes":
            params[0] += self.mark
            return params
        marked = params.clone()
        marked[0] += self.mark * round_index
        if self.fault == "nan":
            marked[0] = torch.nan
        return marked[:-1] if self.fault == "shape" else marked

    def aggregate(self, state, round, server):
        params = round.global_params + round.updates.mean(0)
        params[0] -= self.mark * round.index
        return Aggregate(params, state + 1, report={"first": float(round.global_params[0])})


def test_laws_hold_it_to_a_model():
    check_defense(Marked(mark=0.5))
    check_defense(Pipeline((Clip(),), Marked(mark=0.5)))
    with pytest.raises(BrokenLawError, match="what_is_sent_is_a_model: sent changed its input"):
        check_defense(Marked(0.5, "writes"))
    with pytest.raises(BrokenLawError, match=r"the model to send is \(\(602,\)"):
        check_defense(Marked(0.5, "shape"))


def test_the_global_model_is_sent_by_default():
    round, server = toy_round(), toy_server()
    for defense in (create("krum"), create("nnm+krum+fedadam")):
        state = defense.init(server, round.global_params)
        assert defense.sent(state, round.global_params, server, 1) is round.global_params


def test_a_model_that_is_not_finite_is_not_sent(datadefense_log):
    params = torch.zeros(3)
    layout = Layout.of_state_dict({"w": params})
    sent = model_to_send(Marked(fault="nan"), 0, params, Server(), index=4, layout=layout)
    assert sent is params
    assert "round 4: marked: the model to send is not finite" in datadefense_log.text
    with pytest.raises(ValueError, match=r"marked sends torch.float32 of shape \(2,\)"):
        model_to_send(Marked(fault="shape"), 0, params, Server(), index=4, layout=layout)


def play(federation, defense, rounds=2):
    with Pool(federation, 0) as pool:
        start = begin(federation, defense, Server())
        steps = simulate(federation, defense, Server(), pool, progress=start, rounds=rounds)
        return list(steps)


def test_the_simulators_clients_train_from_what_is_sent():
    federation = tiny_federation(schedule=Never(), attack=None, attacker_data=None)
    (first, after), (second, end) = play(federation, Marked())
    assert first.report["first"] == pytest.approx(float(federation.start[0]) + 100, abs=1e-3)
    assert second.report["first"] == pytest.approx(float(after.params[0]) + 200, abs=1e-3)
    assert float(end.previous[0]) == pytest.approx(second.report["first"])
    assert end.params.abs().max() < 50


def test_with_no_mark_it_is_fedavg_to_the_bit():
    """Sending a copy of the model changes nothing."""
    federation = tiny_federation()
    (_, ours), (_, theirs) = (play(federation, defense)[-1] for defense in (Marked(0.0), Uniform()))
    assert torch.equal(ours.params, theirs.params)


@dataclass(frozen=True, slots=True)
class Uniform(FedAvg):
    """The mean of the updates, and nothing sent but the global model."""

    def aggregate(self, state, round, server):
        return Aggregate(round.global_params + round.updates.mean(0), None)


def test_flowers_nodes_get_what_is_sent_and_are_measured_against_it():
    start = {"w": np.zeros(3, np.float32)}
    grid = FakeGrid({1: shifted(0.5), 2: shifted(1.5)})
    strategy = DefendedStrategy(Marked(), wait_seconds=0)
    result = strategy.start(grid, record(start), 2, timeout=0)
    seen = [float(model_in(message)["w"][0]) for message in grid.asked]
    trained = [value for value in seen if value > 50]
    assert trained == pytest.approx([100, 100, 201, 201])
    assert result.arrays["w"].numpy() == pytest.approx([2, 2, 2])
