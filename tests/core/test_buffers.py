import pytest
import torch
from tests.small_resnet import small_resnet
from torch import nn

from datadefense.core.buffers import fresh_statistics, last_part, refusal, shorten, smallest_batch


def test_fresh_statistics():
    state = small_resnet().state_dict()
    assert "statistics of 5 layers" in fresh_statistics(state, list(state))
    assert fresh_statistics(state, []) is None
    for name in ("bn1.running_mean", "layer1.1.bn2.running_var"):
        moved = {**state, name: state[name] + 0.1}
        assert fresh_statistics(moved, list(moved)) is None


def test_a_mean_without_a_variance_is_no_norm():
    state = {"running_mean": torch.zeros(2)}
    assert fresh_statistics(state, ["running_mean"]) is None


@pytest.mark.parametrize(
    ("module", "count"),
    [
        (nn.Linear(2, 2), 1),
        (nn.GroupNorm(1, 2), 1),
        (nn.LayerNorm(2), 1),
        (nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), 2),
        (small_resnet(), 2),
    ],
)
def test_a_norm_over_a_batch_needs_two(module, count):
    assert smallest_batch(module) == count


def test_words():
    assert last_part("layer1.0.bn1.running_var") == "running_var"
    assert last_part("running_var") == "running_var"
    assert shorten("abcdefg") == "'a', 'b', 'c', 'd', 'e' and 2 more"
    assert shorten(["x" * 100]) == repr("x" * 60)
    assert refusal(["a.mask"]).startswith("the model has 1 buffers ('a.mask')")
