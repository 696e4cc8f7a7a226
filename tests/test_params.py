import pytest
import torch
from torch import nn

from datadefense import Layout, predictor
from datadefense.params import UnhandledBuffersError


def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))


def normed():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 2))


def parameters(module):
    return dict(module.named_parameters())


def test_there_and_back():
    module = small()
    layout = Layout.of_module(module)
    vector = layout.flatten(parameters(module))
    assert layout.dim == len(vector) == sum(p.numel() for p in module.parameters())
    for name, tensor in layout.unflatten(vector).items():
        assert torch.equal(tensor, parameters(module)[name])


def test_views_share_memory():
    layout = Layout.of_module(small())
    vector = torch.zeros(layout.dim)
    views = layout.unflatten(vector)
    views["0.bias"][1] = 5.0
    assert vector.sum() == 5.0
    assert all(
        v.untyped_storage().data_ptr() == vector.untyped_storage().data_ptr()
        for v in views.values()
    )


def test_a_bound_module_is_its_vector():
    module = small()
    layout = Layout.of_module(module)
    before = layout.flatten(parameters(module))
    vector = layout.bind(module)
    assert torch.equal(vector, before)
    inputs = torch.randn(5, 4)
    module(inputs).sum().backward()
    torch.optim.SGD(module.parameters(), lr=0.1).step()
    assert not torch.equal(vector, before)
    assert torch.equal(vector, layout.flatten(parameters(module)))
    vector.zero_()
    assert torch.equal(module(inputs), torch.zeros(5, 2))


def test_the_predictor_is_the_module_and_has_its_gradient():
    module = small()
    layout = Layout.of_module(module)
    vector = layout.flatten(parameters(module)).requires_grad_()
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


def test_buffers_are_refused_by_name():
    with pytest.raises(UnhandledBuffersError, match=r"3 buffers \('1.running_mean'.*GroupNorm"):
        Layout.of_module(normed())
    with pytest.raises(UnhandledBuffersError, match="num_batches_tracked"):
        Layout.of_state_dict(normed().state_dict())
    with pytest.raises(ValueError, match="buffers must be one of"):
        Layout.of_module(normed(), buffers="ignore")


@pytest.mark.parametrize("source", ["module", "state dict"])
def test_buffers_kept_or_aggregated(source):
    module = normed()

    def layout(policy):
        if source == "module":
            return Layout.of_module(module, policy)
        return Layout.of_state_dict(module.state_dict(), policy)

    learned = sum(p.numel() for p in module.parameters())
    keep, aggregate = layout("keep"), layout("aggregate")
    assert keep.dim == learned
    assert set(keep.kept) == {"1.running_mean", "1.running_var", "1.num_batches_tracked"}
    assert aggregate.dim == learned + 4
    assert aggregate.kept == ("1.num_batches_tracked",)
    vector = keep.flatten(parameters(module))
    assert keep.mismatch(module.state_dict()) is None
    inputs = torch.randn(3, 1, 4, 4)
    assert torch.allclose(predictor(module, keep)(vector, inputs), module.eval()(inputs))


def test_named_buffers_of_a_state_dict():
    state = {"weight": torch.zeros(2), "mask": torch.ones(2)}
    assert Layout.of_state_dict(state, "keep", buffer_names=["mask"]).kept == ("mask",)
    with pytest.raises(UnhandledBuffersError, match="'count'"):
        Layout.of_state_dict({"weight": torch.zeros(2), "count": torch.tensor(3)})


def test_tied_weights_are_there_once():
    module = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    module[1].weight = module[0].weight
    layout = Layout.of_module(module)
    assert layout.dim == 9
    assert layout.aliases == (("1.weight", "0.weight"),)
    assert layout.mismatch(module.state_dict()) is None
    assert set(layout.unflatten(torch.zeros(9))) == {"0.weight", "1.weight"}
    inputs = torch.randn(2, 3)
    vector = layout.flatten(parameters(module))
    assert torch.allclose(predictor(module, layout)(vector, inputs), module(inputs))


def test_a_norm_under_two_names():
    shared = nn.BatchNorm1d(3)
    module = nn.Sequential(nn.Linear(3, 3), shared, nn.Linear(3, 3), shared)
    for policy in ("keep", "aggregate"):
        layout = Layout.of_module(module, policy)
        assert layout.mismatch(module.state_dict()) is None
        vector = layout.flatten({s.name: module.state_dict()[s.name] for s in layout.slots})
        inputs = torch.randn(2, 3)
        expected = module.eval()(inputs)
        assert torch.allclose(predictor(module, layout)(vector, inputs), expected)


def test_half_precision_is_widened_and_comes_back():
    module = small().half()
    layout = Layout.of_module(module)
    vector = layout.flatten(parameters(module))
    assert vector.dtype == torch.float32
    for name, tensor in layout.unflatten(vector).items():
        assert tensor.dtype == torch.float16
        assert torch.equal(tensor, parameters(module)[name])
    with pytest.raises(ValueError, match="bind needs every tensor in torch.float32"):
        layout.bind(module)
    assert Layout.of_module(small().double()).dtype == torch.float64


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("0.bias"), "missing tensors: '0.bias'"),
        (lambda t: t.update(extra=torch.zeros(1)), "unknown tensors: 'extra'"),
        (lambda t: t.update({"0.bias": torch.zeros(4)}), r"0.bias has shape \(4,\), expected"),
        (lambda t: t.update({"0.bias": torch.zeros(3).double()}), "0.bias has dtype torch.float64"),
        (lambda t: t.update({"x" * 10_000: torch.zeros(1)}), r"^unknown tensors: '(x{60})'$"),
    ],
)
def test_mismatches(change, message):
    module = small()
    tensors = dict(parameters(module))
    change(tensors)
    with pytest.raises(ValueError, match=message):
        Layout.of_module(module).flatten(tensors)


def test_a_vector_of_the_wrong_length():
    with pytest.raises((ValueError, TypeError)):
        Layout.of_module(small()).unflatten(torch.zeros(5))
    with pytest.raises(ValueError, match="no parameters"):
        Layout.of_module(nn.ReLU())
