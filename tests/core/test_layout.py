import pytest
import torch
from torch import nn

from datadefense import Layout, predictor
from datadefense.core.buffers import FreshStatisticsWarning, UnhandledBuffersError


def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))


def normed():
    """A net whose running statistics are not those of a fresh one."""
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(2)
    norm.running_mean += 0.5
    return nn.Sequential(nn.Conv2d(1, 2, 3), norm, nn.Flatten(), nn.Linear(8, 2))


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


def test_buffers_are_refused_by_name():
    with pytest.raises(UnhandledBuffersError, match=r"3 buffers \('1.running_mean'.*GroupNorm"):
        Layout.of_module(normed(), "refuse")
    with pytest.raises(UnhandledBuffersError, match="num_batches_tracked"):
        Layout.of_state_dict(normed().state_dict(), "refuse")
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
    carried = [slot.name for slot in aggregate.slots if slot.carried]
    assert carried == ["1.running_mean", "1.running_var"]
    assert [slot.name for slot in aggregate.slots if slot.is_variance] == ["1.running_var"]
    assert not any(slot.carried for slot in keep.slots)
    vector = keep.flatten(parameters(module))
    assert keep.mismatch(module.state_dict()) is None
    inputs = torch.randn(3, 1, 4, 4)
    assert torch.allclose(predictor(module, keep)(vector, inputs), module.eval()(inputs))


def test_the_default_aggregates_and_says_so(datadefense_log):
    datadefense_log.set_level("INFO", logger="datadefense")
    for layout in (Layout.of_module(normed()), Layout.of_state_dict(normed().state_dict())):
        line = layout.about_buffers()
        assert line == (
            "buffers of the model: 2 are aggregated with the parameters ('1.running_mean', "
            "'1.running_var'); 1 stay as the server has them ('1.num_batches_tracked')"
        )
        assert datadefense_log.messages.count(line) >= 1
    datadefense_log.clear()
    assert Layout.of_module(small()).about_buffers() is None
    assert not datadefense_log.messages


def test_fresh_statistics_that_are_kept_are_a_warning():
    fresh = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.BatchNorm1d(3))
    for make in (lambda: Layout.of_module(fresh, "keep"), lambda: of_state(fresh, "keep")):
        with pytest.warns(FreshStatisticsWarning, match="statistics of 2 layers are freshly init"):
            make()
    Layout.of_module(fresh, "aggregate")  # a warning would be an error
    fresh[2].running_var *= 0.5
    Layout.of_module(fresh, "keep")
    of_state(fresh, "keep")


def of_state(module, policy):
    return Layout.of_state_dict(module.state_dict(), policy)


def test_a_variance_below_zero_stays_as_it_was():
    layout = Layout.of_module(normed())
    before = layout.flatten(normed().state_dict()) + 1.0
    (slot,) = [slot for slot in layout.slots if slot.is_variance]
    wanted = torch.randn(layout.dim, generator=torch.Generator().manual_seed(3))
    wanted[slot.start], wanted[slot.start + 1] = -1e-30, 0.25
    settled = layout.to_valid_params(wanted, before)
    expected = [
        float(before[place])
        if slot.start <= place < slot.stop and float(wanted[place]) < 0
        else float(wanted[place])
        for place in range(layout.dim)
    ]
    assert settled.tolist() == expected
    assert expected[slot.start : slot.stop] == [2.0, 0.25]
    assert wanted[slot.start] < 0  # what was given is as it was
    before[slot.start] = -5.0
    assert layout.to_valid_params(wanted, before)[slot.start] == 0
    wanted[slot.start] = torch.inf
    assert layout.to_valid_params(wanted, before) is None


def test_named_buffers_of_a_state_dict():
    state = {"weight": torch.zeros(2), "mask": torch.ones(2)}
    assert Layout.of_state_dict(state, "keep", buffer_names=["mask"]).kept == ("mask",)
    with pytest.raises(UnhandledBuffersError, match="'count'"):
        Layout.of_state_dict({"weight": torch.zeros(2), "count": torch.tensor(3)}, "refuse")


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


def test_parameters_without_the_buffers():
    layout = Layout.of_module(normed())
    with pytest.raises(ValueError, match=r"'1.running_mean'.*; a module's state_dict"):
        layout.flatten(parameters(normed()))
    assert layout.flatten(normed().state_dict()).shape == (layout.dim,)


def test_a_vector_of_the_wrong_length():
    with pytest.raises((ValueError, TypeError)):
        Layout.of_module(small()).unflatten(torch.zeros(5))
    with pytest.raises(ValueError, match="no parameters"):
        Layout.of_module(nn.ReLU())


def test_a_matrix_is_split_by_the_names_of_its_columns():
    layout = Layout.of_state_dict({"w": torch.zeros(2, 2), "b": torch.zeros(1)})
    matrix = torch.arange(10.0).view(2, 5)
    parts = layout.split(matrix)
    assert list(parts) == ["w", "b"]
    assert torch.equal(torch.cat(list(parts.values()), dim=1), matrix)
    with pytest.raises(ValueError, match=r"expected a matrix \[rows, 5\], got \(2, 4\)"):
        layout.split(matrix[:, :4])
