import copy
import subprocess
import sys

import pytest
import torch
from tests.small_resnet import small_resnet, stripes
from torch import nn

from datadefense import Examples, Layout, predictor
from datadefense.core.compute import WIDE, Compute
from datadefense.core.local_training import Sgd, Trainer
from datadefense.core.settings import SettingsError


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
    trainer = Trainer(copy.deepcopy(module), layout)
    trainer.load(start)
    trainer.train(sgd, digits(), torch.Generator().manual_seed(5))
    update = torch.empty_like(start)
    trainer.write_update(start, update)
    assert torch.allclose(start + update, by_vector, atol=1e-5)


def slow_train(sgd, predict, params, examples, generator):
    """The loop of `Sgd.train` written out, as it was before all training had one loop."""
    current = params.detach().clone()
    velocity = torch.zeros_like(current)
    for _ in range(sgd.epochs):
        order = torch.randperm(len(examples), generator=generator)
        for index in torch.split(order, sgd.batch_size):
            batch = examples.take(index)
            point = current.detach().requires_grad_()
            loss = nn.functional.cross_entropy(predict(point, batch.inputs), batch.labels)
            (gradient,) = torch.autograd.grad(loss, point)
            velocity.mul_(sgd.momentum).add_(gradient).add_(current, alpha=sgd.weight_decay)
            current = current.detach().sub_(velocity, alpha=sgd.learning_rate)
    return current


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("decay", [0.0, 0.01])
@pytest.mark.parametrize("batch_size", [1, 7, 20, 64])
def test_a_vector_trains_as_in_the_loop_written_out_to_the_bit(momentum, decay, batch_size):
    module = conv_net()
    layout, start = Layout.of_module(module), vector_of(module)
    sgd, predict = Sgd(3, batch_size, 0.05, momentum, decay), predictor(module, layout)
    before = start.clone()
    fast = sgd.train(predict, start, digits(), torch.Generator().manual_seed(5))
    slow = slow_train(sgd, predict, start, digits(), torch.Generator().manual_seed(5))
    assert torch.equal(fast, slow)
    assert torch.equal(start, before)


def test_any_function_of_a_vector_can_be_trained():
    sgd = Sgd(2, 8, 0.05)
    examples = Examples(torch.randn(20, 4), torch.arange(20) % 2)

    def predict(params, inputs):
        return inputs @ params.view(4, 2)

    start = torch.linspace(-1, 1, 8)
    fast = sgd.train(predict, start, examples, torch.Generator().manual_seed(5))
    slow = slow_train(sgd, predict, start, examples, torch.Generator().manual_seed(5))
    assert torch.equal(fast, slow)


@pytest.mark.parametrize("decay", [0.0, 0.01])
@pytest.mark.parametrize("policy", ["aggregate", "keep"])
def test_batch_norm_in_the_vector_trains_as_in_the_module(policy, decay):
    """Running statistics move by the batches, not by the gradient or the weight decay."""
    module = small_resnet()
    module.train()(stripes(32, 9).inputs)
    layout = Layout.of_module(module, policy)
    start, images = layout.flatten(module.state_dict()), stripes(33, 1)
    sgd = Sgd(2, 8, 0.02, 0.9, decay)
    by_vector = sgd.train(
        predictor(module, layout), start, images, torch.Generator().manual_seed(5)
    )
    trainer = Trainer(copy.deepcopy(module), layout)
    trainer.load(start)
    trainer.train(sgd, images, torch.Generator().manual_seed(5))
    update = trainer.write_update(start, torch.empty_like(start))
    torch.testing.assert_close(start + update, by_vector, rtol=1e-3, atol=1e-4)
    statistics = [update[slot.start : slot.stop] for slot in layout.slots if slot.carried]
    assert len(statistics) == (10 if policy == "aggregate" else 0)
    assert all(bool(part.any()) for part in statistics)


@pytest.mark.parametrize("policy", ["aggregate", "keep"])
@pytest.mark.parametrize("momentum", [0.1, None])
def test_no_client_begins_with_the_buffers_of_another(policy, momentum):
    module = small_resnet()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.momentum = momentum
    module.bn1.running_mean += 0.5
    layout = Layout.of_module(module, policy)
    start, tests = layout.flatten(module.state_dict()), stripes(40, 3)
    trainer = Trainer(copy.deepcopy(module), layout)
    answers = []
    for _ in range(2):
        trainer.load(start)
        correct = trainer.count_correct(tests)
        trainer.train(Sgd(1, 8), stripes(24, 1), torch.Generator().manual_seed(5))
        answers.append((correct, trainer.write_update(start, torch.empty_like(start)).tolist()))
    assert answers[0] == answers[1]
    trainer.load(start)
    for name, buffer in trainer.module.named_buffers():
        assert torch.equal(buffer, module.get_buffer(name)), name


def norm_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))


@pytest.mark.parametrize(("count", "steps"), [(17, 2), (16, 2), (18, 3), (1, 0)])
def test_a_lone_last_example_has_no_variance_and_is_left_out(count, steps):
    module = norm_net()
    examples, calls = Examples(torch.randn(count, 4), torch.arange(count) % 2), []
    trainer = Trainer(module, Layout.of_module(module))
    trainer.train(
        Sgd(1, 8), examples, torch.Generator(), after_step=lambda *call: calls.append(call)
    )
    assert calls == [(step, step == steps - 1) for step in range(steps)]
    layout = Layout.of_module(norm_net())
    start = layout.flatten(norm_net().state_dict())
    trained = Sgd(1, 8).train(
        predictor(norm_net(), layout), start, examples, torch.Generator().manual_seed(5)
    )
    assert torch.equal(trained, start) is (steps == 0)


def test_batches_of_one_are_no_batches_for_batch_norm():
    module = norm_net()
    examples = Examples(torch.randn(4, 4), torch.arange(4) % 2)
    with pytest.raises(SettingsError, match="batch_size must be >= 2 for a model with BatchNorm"):
        Trainer(module, Layout.of_module(module)).train(Sgd(1, 1), examples, torch.Generator())


def test_a_bench_forgets_the_client_before():
    module = conv_net()
    layout, start = Layout.of_module(module), vector_of(module)
    trainer = Trainer(module, layout)
    updates = []
    for _ in range(2):
        trainer.load(start)
        trainer.train(Sgd(1, 8), digits(), torch.Generator().manual_seed(5))
        updates.append(torch.empty_like(start))
        trainer.write_update(start, updates[-1])
    assert torch.equal(*updates)


def colour_net(width):
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, width, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * width, 3))


@pytest.mark.parametrize(("width", "narrow"), [(4, True), (WIDE - 1, True), (WIDE, False)])
def test_only_narrow_nets_are_kept_channels_last(width, narrow):
    module = colour_net(width)
    layout, start = Layout.of_module(module), vector_of(module)
    trainer = Trainer(copy.deepcopy(module), layout)
    weight = trainer.tensors[0]
    assert weight.is_contiguous(memory_format=torch.channels_last) is narrow
    assert weight.is_contiguous() is not narrow
    origin = torch.zeros_like(start)
    assert torch.equal(trainer.write_update(origin, torch.empty_like(start)), start)
    other = torch.randn(len(start), generator=torch.Generator().manual_seed(2))
    trainer.load(other)
    assert torch.equal(weight.flatten(), other[: weight.numel()])
    assert torch.equal(trainer.write_update(origin, torch.empty_like(start)), other)


def test_the_format_does_not_matter_to_the_vector():
    module = colour_net(6)
    layout, start = Layout.of_module(module), vector_of(module)
    draw = torch.Generator().manual_seed(1)
    pictures = Examples(torch.randn(20, 3, 6, 6, generator=draw), torch.arange(20) % 3)
    updates = []
    for memory_format in ("channels_last", "contiguous"):
        compute = Compute(memory_format=memory_format)
        trainer = Trainer(copy.deepcopy(module), layout, compute=compute)
        trainer.load(start)
        trainer.train(Sgd(2, 8), pictures, torch.Generator().manual_seed(5))
        updates.append(trainer.write_update(start, torch.empty_like(start)))
    torch.testing.assert_close(*updates)


def test_bf16_training_is_near_float32_and_keeps_float32_parameters():
    module = colour_net(6)
    layout, start = Layout.of_module(module), vector_of(module)
    draw = torch.Generator().manual_seed(1)
    pictures = Examples(torch.randn(40, 3, 6, 6, generator=draw), torch.arange(40) % 3)
    updates = []
    for precision in ("float32", "bf16", "bf16"):
        trainer = Trainer(copy.deepcopy(module), layout, compute=Compute(precision))
        trainer.load(start)
        trainer.train(Sgd(2, 8), pictures, torch.Generator().manual_seed(5))
        updates.append(trainer.write_update(start, torch.empty_like(start)))
        assert {tensor.dtype for tensor in trainer.tensors} == {torch.float32}
    exact, rough, again = updates
    assert torch.equal(rough, again)
    assert not torch.equal(exact, rough)
    assert float((exact - rough).norm() / exact.norm()) < 0.05


def test_a_loss_sees_float32_logits_in_bf16():
    module, seen = colour_net(6), []
    layout = Layout.of_module(module)
    trainer = Trainer(module, layout, compute=Compute("bf16"))
    pictures = Examples(torch.randn(8, 3, 6, 6), torch.arange(8) % 3)

    def loss(net, inputs, labels):
        logits = net(inputs)
        seen.append((net[0](inputs).dtype, logits.dtype))
        return torch.nn.functional.cross_entropy(logits, labels)

    trainer.train(Sgd(1, 8), pictures, torch.Generator(), loss=loss)
    assert seen == [(torch.bfloat16, torch.float32)]


class Forked(nn.Module):
    """A net with a layer that no loss depends on."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.unused, self.used = nn.Linear(4, 2), conv_net()

    def forward(self, inputs):
        return self.used(inputs)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("make", [conv_net, Forked])
def test_a_step_is_that_of_torch_to_the_bit(make, momentum):
    sgd = Sgd(2, 8, 0.05, momentum, 0.01)
    module = make()
    layout = Layout.of_module(module)
    trainer = Trainer(module, layout)
    trainer.train(sgd, digits(), torch.Generator().manual_seed(5))
    other = make().to(memory_format=torch.channels_last)
    slow = torch.optim.SGD(other.parameters(), 0.05, momentum, weight_decay=0.01, fused=True)
    draw = torch.Generator().manual_seed(5)
    for _ in range(2):
        for index in torch.split(torch.randperm(20, generator=draw), 8):
            batch = digits().take(index)
            slow.zero_grad()
            inputs = batch.inputs.contiguous(memory_format=torch.channels_last)
            nn.functional.cross_entropy(other(inputs), batch.labels).backward()
            slow.step()
    pairs = zip(module.parameters(), other.parameters(), strict=True)
    assert all(torch.equal(one, two) for one, two in pairs)


@pytest.mark.slow
def test_training_does_not_load_the_compiler():
    """PyTorch's optimiser classes do, which takes every process a second."""
    code = """
import sys, torch
from torch import nn
from datadefense import Examples, Layout
from datadefense.core.local_training import Trainer, Sgd
module = nn.Linear(2, 2)
trainer = Trainer(module, Layout.of_module(module))
trainer.train(Sgd(), Examples(torch.ones(4, 2), torch.zeros(4).long()), torch.Generator())
sys.exit("torch._dynamo" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_counting_is_accuracy():
    module = conv_net()
    trainer = Trainer(copy.deepcopy(module), Layout.of_module(module))
    examples = digits(33)
    expected = int((module(examples.inputs).argmax(1) == examples.labels).sum())
    assert trainer.count_correct(examples, batch_size=10) == expected


def test_the_step_size_decays_from_round_to_round():
    sgd = Sgd(learning_rate=0.1, decay=0.5)
    assert sgd.in_round(1).learning_rate == 0.1
    assert sgd.in_round(3).learning_rate == pytest.approx(0.025)


def test_augmentation_and_hooks_are_called():
    module = conv_net()
    trainer = Trainer(module, Layout.of_module(module))
    calls = []
    trainer.train(
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
