import copy

import pytest
import torch
from tests.small_resnet import small_resnet, stripes
from torch import nn

from datadefense import Layout, predictor


def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))


def test_the_predictor_is_the_module_and_has_its_gradient():
    module = small()
    layout = Layout.of_module(module)
    vector = layout.flatten(dict(module.named_parameters())).requires_grad_()
    inputs = torch.randn(5, 4)
    predict = predictor(module, layout)
    assert torch.allclose(predict(vector, inputs), module(inputs))
    (gradient,) = torch.autograd.grad(predict(vector, inputs).square().sum(), vector)
    module(inputs).square().sum().backward()
    expected = torch.cat([p.grad.flatten() for p in module.parameters()])
    assert torch.allclose(gradient, expected, atol=1e-6)
    with torch.no_grad():
        module[0].weight.zero_()
    assert not torch.allclose(predict(vector, inputs), module(inputs))


def test_a_norm_under_two_names():
    shared = nn.BatchNorm1d(3)
    shared.running_mean += 0.5
    module = nn.Sequential(nn.Linear(3, 3), shared, nn.Linear(3, 3), shared)
    for policy in ("keep", "aggregate"):
        layout = Layout.of_module(module, policy)
        assert layout.mismatch(module.state_dict()) is None
        vector = layout.flatten({s.name: module.state_dict()[s.name] for s in layout.slots})
        inputs = torch.randn(2, 3)
        expected = module.eval()(inputs)
        assert torch.allclose(predictor(module, layout)(vector, inputs), expected)


def trained_resnet():
    """A ResNet whose statistics have been moved, with its layout and vector."""
    module = small_resnet().train()
    module(stripes(32, 0).inputs)
    layout = Layout.of_module(module)
    return module, layout, layout.flatten(module.state_dict())


def test_batch_norm_has_a_gradient_in_what_is_learned_only():
    module, layout, vector = trained_resnet()
    images = stripes(8, 1).inputs
    point = vector.clone().requires_grad_()
    logits = predictor(module, layout)(point, images)
    (gradient,) = torch.autograd.grad(logits.square().sum(), point)
    module.eval()(images).square().sum().backward()
    for slot in layout.slots:
        part = gradient[slot.start : slot.stop].view(slot.shape)
        if slot.carried:
            assert not part.any()
        else:
            torch.testing.assert_close(
                part, module.get_parameter(slot.name).grad, rtol=1e-3, atol=1e-4
            )
    assert sum(slot.carried for slot in layout.slots) == 10


def test_the_carried_statistics_are_those_of_the_vector():
    module, layout, vector = trained_resnet()
    images = stripes(8, 1).inputs
    expected = module.eval()(images)
    fresh = predictor(small_resnet(), layout)  # another module: all values come from the vector
    torch.testing.assert_close(fresh(vector, images), expected)


def test_no_vector_makes_the_root_of_a_negative_variance():
    module, layout, vector = trained_resnet()
    images = stripes(8, 1).inputs
    hostile, floored = vector.clone(), vector.clone()
    for slot in layout.slots:
        if slot.is_variance:
            hostile[slot.start] = -7.0
            floored[slot.start] = 0.0
    predict = predictor(module, layout)
    assert predict(hostile, images).isfinite().all()
    assert torch.equal(predict(hostile, images), predict(floored, images))
    assert (hostile < -6).any()  # the vector itself is as it was


class TestLearning:
    def test_it_is_the_module_in_training_mode(self):
        """The slow twin: the module itself, in training mode, which moves its own buffers."""
        module, layout, vector = trained_resnet()
        twin = copy.deepcopy(module).train()
        learning = predictor(module, layout).learning(vector)
        for seed in (1, 2):
            images = stripes(8, seed).inputs
            torch.testing.assert_close(learning(vector, images), twin(images))
        written = vector.clone()
        learning.write_statistics(written)
        torch.testing.assert_close(written, layout.flatten(twin.state_dict()))
        assert not torch.equal(written, vector)
        learned = torch.cat([torch.full((s.stop - s.start,), not s.carried) for s in layout.slots])
        assert torch.equal(written[learned], vector[learned])

    def test_nothing_of_it_is_left_behind(self):
        module, layout, vector = trained_resnet()
        before = copy.deepcopy(module.state_dict())
        images, predict = stripes(8, 1).inputs, predictor(module, layout)
        first, start = predict(vector, images), vector.clone()
        answers = [predict.learning(vector)(vector, images) for _ in range(2)]
        assert torch.equal(*answers)
        assert torch.equal(vector, start)
        assert torch.equal(predict(vector, images), first)
        assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())

    def test_a_cumulative_average_begins_anew(self):
        """With momentum=None a norm divides by its counter, which is no part of the vector."""
        norm = nn.BatchNorm1d(2, momentum=None)
        layout = Layout.of_module(norm)
        vector = layout.flatten(norm.state_dict())
        predict, inputs = predictor(norm, layout), torch.arange(8.0).view(4, 2)
        for _ in range(2):
            learning, written = predict.learning(vector), vector.clone()
            learning(vector, inputs)
            learning.write_statistics(written)
            assert layout.unflatten(written)["running_mean"].tolist() == [3.0, 4.0]

    def test_without_such_norms_it_is_the_predictor_to_the_bit(self):
        torch.manual_seed(0)
        module = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.Dropout(), nn.Flatten(), nn.Linear(144, 4)
        )
        layout = Layout.of_module(module)
        vector, images = layout.flatten(module.state_dict()), stripes(8, 1).inputs
        predict = predictor(module, layout)
        assert torch.equal(predict.learning(vector)(vector, images), predict(vector, images))
        assert predict.learning(vector).smallest_batch == 1

    @pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
    def test_statistics_of_other_dtypes(self, dtype):
        module = nn.BatchNorm1d(2).to(dtype)
        layout = Layout.of_module(module)
        vector = layout.flatten(module.state_dict())
        learning = predictor(module, layout).learning(vector)
        learning(vector, torch.tensor([[0.0, 2.0], [2.0, 4.0]], dtype=dtype))
        learning.write_statistics(vector)
        mean = layout.unflatten(vector)["running_mean"]
        assert mean.tolist() == pytest.approx([0.1, 0.3], abs=1e-3)
