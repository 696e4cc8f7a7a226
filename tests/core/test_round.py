import pytest
import torch

from datadefense import Layout, Round


def make(**changes):
    fields = {
        "index": 1,
        "global_params": torch.zeros(3),
        "updates": torch.zeros(2, 3),
        "num_examples": torch.tensor([1, 3]),
        "client_ids": ("a", "b"),
    }
    return Round(**(fields | changes))


def test_shares():
    assert make().shares().tolist() == [0.25, 0.75]
    assert make().num_clients == 2


def test_layers_are_views_by_name():
    layout = Layout.of_state_dict({"w": torch.zeros(2, 1), "b": torch.zeros(1)})
    updates = torch.arange(6.0).view(2, 3)
    layers = make(updates=updates, layout=layout).layers()
    assert {name: layer.tolist() for name, layer in layers.items()} == {
        "w": [[0.0, 1.0], [3.0, 4.0]],
        "b": [[2.0], [5.0]],
    }
    assert layers["b"].data_ptr() == updates[0, 2:].data_ptr()
    with pytest.raises(ValueError, match="this round has no layout"):
        make().layers()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"layout": Layout.of_state_dict({"w": torch.zeros(4)})},
            "updates have dim=3, the layout has dim=4",
        ),
        ({"updates": torch.zeros(2, 4)}, "updates have dim=4, global_params have dim=3"),
        ({"updates": torch.zeros(2, 3).double()}, "must both be float32 or both float64"),
        ({"num_examples": torch.tensor([0, 3])}, "num_examples must be >= 1, got 0"),
    ],
)
def test_what_does_not_fit_is_an_error(changes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"updates": torch.zeros(3)},
        {"updates": torch.zeros(0, 3), "num_examples": torch.zeros(0).long(), "client_ids": ()},
        {"client_ids": ("a",)},
        {"num_examples": torch.tensor([1, 2, 3])},
        {"updates": torch.zeros(2, 3).long(), "global_params": torch.zeros(3).long()},
    ],
)
def test_misshapen_rounds_cannot_be_made(changes):
    with pytest.raises(Exception):  # noqa: B017, PT011 - ours, or the shape check of the tests
        make(**changes)
