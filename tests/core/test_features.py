import pytest
import torch
from torch import nn

from datadefense.core.features import penultimate
from datadefense.core.rng import generator
from datadefense.tasks.models.lenet import lenet
from datadefense.tasks.models.lstm import LstmClassifier
from datadefense.tasks.models.normalised import Normalised
from datadefense.tasks.models.vgg9 import vgg9


def images(count, *shape):
    return torch.randn(count, *shape, generator=generator(0, "images"))


def words(count):
    return torch.randint(30, (count, 9), generator=generator(0, "words"), dtype=torch.int32)


def all_but_the_last(sequential, inputs):
    return sequential[:-1](inputs)


def last_state(model, inputs):
    states, _ = model.lstm(model.embedding(inputs))
    return states[:, -1]


def body(model, inputs):
    return model.body[:-1]((inputs.float() / 255 - 0.5) / 0.5)


CASES = [
    pytest.param(lenet, all_but_the_last, images(7, 1, 28, 28), 500, id="lenet"),
    pytest.param(
        lambda: vgg9(10, 0.25), all_but_the_last, images(7, 3, 32, 32), 128, id="vgg9-quarter"
    ),
    pytest.param(
        lambda: LstmClassifier(30, embedding=6, hidden=5), last_state, words(7), 5, id="lstm"
    ),
    pytest.param(
        lambda: Normalised(nn.Sequential(nn.Flatten(), nn.Linear(4, 3)), (0.5,), (0.5,)),
        body,
        torch.arange(28, dtype=torch.uint8).view(7, 1, 2, 2),
        4,
        id="normalised",
    ),
]


@pytest.mark.parametrize(("make", "by_hand", "inputs", "width"), CASES)
def test_features_are_what_the_last_dense_layer_sees(make, by_hand, inputs, width):
    model = make()
    features = penultimate(model, inputs)
    assert features.shape == (len(inputs), width)
    assert not features.requires_grad
    with torch.no_grad():
        assert torch.allclose(features, by_hand(model.eval(), inputs), atol=1e-6)


@pytest.mark.parametrize(("make", "by_hand", "inputs", "width"), CASES)
@pytest.mark.parametrize("batch_size", [1, 3])
def test_batches_do_not_matter(make, by_hand, inputs, width, batch_size):
    model = make()
    parts = penultimate(model, inputs, batch_size)
    assert parts.shape == (len(inputs), width)
    with torch.no_grad():
        assert torch.allclose(parts, by_hand(model.eval(), inputs), atol=1e-5)


def test_dropout_is_off_and_every_part_is_left_as_it_was():
    """A frozen part in a model that trains stays frozen; no hook is left behind."""
    model = nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.BatchNorm1d(6), nn.Linear(6, 2))
    model.train()
    model[2].eval()
    inputs = images(5, 4)
    assert torch.equal(penultimate(model, inputs), penultimate(model, inputs))
    assert [part.training for part in model.modules()] == [True, True, True, False, True]
    assert not model[3]._forward_pre_hooks
    model.eval()
    penultimate(model, inputs)
    assert not any(part.training for part in model.modules())


def test_an_error_on_the_way_leaves_the_model_as_it_was():
    model = nn.Sequential(nn.Linear(4, 2)).train()
    with pytest.raises(RuntimeError):
        penultimate(model, images(3, 5))
    assert model.training
    assert model[0].training
    assert not model[0]._forward_pre_hooks


def test_a_model_without_a_dense_layer():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten())
    with pytest.raises(ValueError, match="Sequential has no nn.Linear"):
        penultimate(model, images(2, 1, 3, 3))
