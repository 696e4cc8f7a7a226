import copy

import pytest
import torch
from torch import nn

from datadefense import Examples, Layout, predictor
from datadefense.settings import SettingsError
from datadefense.training import Bench, Sgd


def conv_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))


def digits(count=20):
    draw = torch.Generator().manual_seed(1)
    return Examples(
        torch.randn(count, 1, 6, 6, generator=draw), torch.randint(3, (count,), generator=draw)
    )


def vector_of(module):
    return Layout.of_module(module).flatten(dict(module.named_parameters()))


@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_the_module_and_the_vector_train_alike(decay):
    """Two implementations of one thing: a resident channels-last module, and autograd on [dim]."""
    module = conv_net()
    layout, start = Layout.of_module(module), vector_of(module)
    sgd = Sgd(2, 8, 0.05, 0.9, decay)
    by_vector = sgd.train(
        predictor(module, layout), start, digits(), torch.Generator().manual_seed(5)
    )
    bench = Bench(copy.deepcopy(module), layout)
    bench.load(start)
    bench.train(sgd, digits(), torch.Generator().manual_seed(5))
    update = torch.empty_like(start)
    bench.write_update(start, update)
    assert torch.allclose(start + update, by_vector, atol=1e-5)


def test_a_bench_forgets_the_client_before():
    module = conv_net()
    layout, start = Layout.of_module(module), vector_of(module)
    bench = Bench(module, layout)
    updates = []
    for _ in range(2):
        bench.load(start)
        bench.train(Sgd(1, 8), digits(), torch.Generator().manual_seed(5))
        updates.append(torch.empty_like(start))
        bench.write_update(start, updates[-1])
    assert torch.equal(*updates)


def test_counting_is_accuracy():
    module = conv_net()
    bench = Bench(copy.deepcopy(module), Layout.of_module(module))
    examples = digits(33)
    expected = int((module(examples.inputs).argmax(1) == examples.labels).sum())
    assert bench.count_correct(examples, batch_size=10) == expected


def test_the_step_size_decays_from_round_to_round():
    sgd = Sgd(learning_rate=0.1, decay=0.5)
    assert sgd.in_round(1).learning_rate == 0.1
    assert sgd.in_round(3).learning_rate == pytest.approx(0.025)


def test_augmentation_and_hooks_are_called():
    module = conv_net()
    bench = Bench(module, Layout.of_module(module))
    calls = []
    bench.train(
        Sgd(1, 8),
        digits(),
        torch.Generator(),
        augment=lambda inputs, generator: (calls.append("augment"), inputs)[1],
        before_step=lambda: calls.append("before"),
        after_step=lambda step, last: calls.append((step, last)),
    )
    assert calls == [
        "augment",
        "before",
        (0, False),
        "augment",
        "before",
        (1, False),
        "augment",
        "before",
        (2, True),
    ]


@pytest.mark.parametrize("settings", [{"batch_size": 0}, {"weight_decay": -1.0}, {"decay": 1.1}])
def test_bad_settings(settings):
    with pytest.raises(SettingsError):
        Sgd(**settings)
