"""A defense that looks at the model layer by layer: twenty lines, on every way into a round."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from tests.flower.fake_grid import FakeGrid, record, shifted
from tests.simulation.tiny import tiny_federation

from datadefense import Combined, Gate, Layout, Promise, Rule, Server, Submission, defend
from datadefense.flower import DefendedStrategy
from datadefense.kernels.sums import norms
from datadefense.simulation.pool import Pool
from datadefense.simulation.rounds import begin, simulate
from datadefense.testing import check_defense


@dataclass(frozen=True, slots=True)
class LayerClip(Rule):
    """Shorten each layer of each update to the median norm of that layer, then average."""

    name: ClassVar[str] = "layer-clip"
    promises: ClassVar[Promise] = (
        Promise.SYMMETRIC | Promise.UNANIMOUS | Promise.TRANSLATES | Promise.BOUNDED
    )

    def combine(self, round):
        """Clip and average layer by layer."""
        means = []
        for layer in round.layers().values():
            lengths = norms(layer.contiguous())
            bound = lengths.median()
            factors = torch.where(lengths > bound, bound / lengths, 1.0).to(layer.dtype)
            means.append((factors[:, None] * layer).mean(0))
        return Combined(torch.cat(means), report={"layers": list(round.layers())})


def test_it_keeps_the_laws():
    check_defense(LayerClip())


def test_through_the_gate():
    layout = Layout.of_state_dict({"w": torch.zeros(2), "b": torch.zeros(1)})
    vectors = [[3.0, 4.0, 1.0], [3.0, 4.0, 9.0], [30.0, 40.0, 1.0]]
    sent = [Submission(j, torch.tensor(v), 10) for j, v in enumerate(vectors)]
    admission = Gate(layout).admit(1, torch.zeros(3), sent)
    assert admission.round.layout is layout
    result = defend(LayerClip(), None, admission, torch.zeros(3), Server())
    assert result.params.tolist() == pytest.approx([3, 4, 1])
    assert result.report["layers"] == ["w", "b"]


def test_in_the_simulator():
    federation = tiny_federation()
    with Pool(federation, 0) as pool:
        start = begin(federation, LayerClip(), Server())
        steps = simulate(federation, LayerClip(), Server(), pool, progress=start, rounds=2)
        reports = [step.report for step, _ in steps]
    assert [one["layers"] for one in reports] == [["0.weight", "0.bias", "3.weight", "3.bias"]] * 2


def test_in_flower():
    start = {"w": np.zeros((2, 3), np.float32), "b": np.zeros(2, np.float32)}
    nodes = {1: shifted(0.5), 2: shifted(0.5), 3: shifted(1e20)}
    strategy = DefendedStrategy(LayerClip(), wait_seconds=0)
    result = strategy.start(FakeGrid(nodes), record(start), 1, timeout=0)
    assert result.arrays["w"].numpy() == pytest.approx(np.full((2, 3), 0.5), abs=1e-4)
