"""The networks: sizes, shapes, and that they fit the vector that defenses work on."""

from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from datadefense import Layout
from datadefense.core.predictor import predictor
from datadefense.core.rng import generator
from datadefense.tasks.models.lenet import lenet
from datadefense.tasks.models.lstm import LstmClassifier
from datadefense.tasks.models.mnist_net import mnist_net
from datadefense.tasks.models.vgg9 import BLOCKS, vgg9


def words(count, length, num_words):
    return torch.randint(
        num_words, (count, length), generator=generator(0, "words"), dtype=torch.int32
    )


def images(count, *shape):
    return torch.randn(count, *shape, generator=generator(0, "images"))


CASES = [
    pytest.param(lenet, images(3, 1, 28, 28), 10, 431_080, id="lenet"),
    pytest.param(vgg9, images(3, 3, 32, 32), 10, 9_225_610, id="vgg9"),
    pytest.param(lambda: vgg9(100), images(2, 3, 32, 32), 100, 9_271_780, id="vgg9-100"),
    pytest.param(lambda: vgg9(10, 0.25), images(3, 3, 32, 32), 10, 578_410, id="vgg9-quarter"),
    pytest.param(mnist_net, images(3, 1, 28, 28), 10, 1_199_882, id="mnist-net"),
    pytest.param(lambda: LstmClassifier(5000), words(3, 12, 5000), 2, 1_643_602, id="lstm"),
]


@pytest.mark.parametrize(("make", "inputs", "classes", "parameters"), CASES)
def test_size_shape_and_layout(make, inputs, classes, parameters):
    model = make()
    layout = Layout.of_module(model)
    assert layout.dim == parameters
    assert layout.kept == ()
    assert not list(model.buffers())
    logits = model.eval()(inputs)
    assert logits.shape == (len(inputs), classes)
    assert logits.isfinite().all()


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        pytest.param(lambda: vgg9(5, 0.05), images(4, 3, 32, 32), id="vgg9"),
        pytest.param(lambda: mnist_net(5), images(4, 1, 28, 28), id="mnist-net"),
        pytest.param(
            lambda: LstmClassifier(30, classes=5, embedding=6, hidden=7), words(4, 9, 30), id="lstm"
        ),
    ],
)
def test_a_model_is_a_function_of_its_vector(make, inputs):
    model = make()
    layout = Layout.of_module(model)
    vector = layout.flatten(dict(model.named_parameters())).requires_grad_()
    predict = predictor(model, layout)
    torch.testing.assert_close(predict(vector, inputs), model.eval()(inputs))
    loss = cross_entropy(predict(vector, inputs), torch.arange(4))
    (gradient,) = torch.autograd.grad(loss, vector)
    cross_entropy(model(inputs), torch.arange(4)).backward()
    expected = layout.flatten({name: p.grad for name, p in model.named_parameters()})
    torch.testing.assert_close(gradient, expected)
    assert all(gradient[slot.start : slot.stop].abs().max() > 0 for slot in layout.slots)
    bound = layout.bind(model)
    before = model(inputs)
    bound.mul_(1.5)
    assert not torch.equal(model(inputs), before)


def slow_vgg9(model, inputs):
    """The paper's table, line by line."""
    convolutions = [layer for layer in model.features if isinstance(layer, nn.Conv2d)]
    pooled_after = {1, 2, 4, 6, 8}
    x = inputs
    for index, layer in enumerate(convolutions, start=1):
        x = torch.conv2d(x, layer.weight, layer.bias, stride=1, padding=1).clamp(min=0)
        if index in pooled_after:
            x = torch.max_pool2d(x, kernel_size=2, stride=2)
    x = torch.nn.functional.avg_pool2d(x, kernel_size=1, stride=1)
    return x.reshape(len(x), -1) @ model.classifier.weight.T + model.classifier.bias


def test_vgg9_is_the_papers_table():
    model = vgg9()
    shapes = [tuple(p.shape) for name, p in model.named_parameters() if name.endswith("weight")]
    channels = [3, 64, 128, 256, 256, 512, 512, 512, 512]
    assert shapes == [*((b, a, 3, 3) for a, b in pairwise(channels)), (10, 512)]
    assert [full for block in BLOCKS for full in block] == channels[1:]
    names = [name for name, _ in model.named_parameters()]
    assert names[::2][:2] == ["features.0.weight", "features.3.weight"]
    assert names[-2:] == ["classifier.weight", "classifier.bias"]
    inputs = images(2, 3, 32, 32)
    torch.testing.assert_close(model(inputs), slow_vgg9(model, inputs))


def relu_first(layers):
    """The same layers, in the order of the papers: each pooling behind the ReLU that follows it."""
    found = list(layers)
    pools = [place for place, layer in enumerate(found) if isinstance(layer, nn.MaxPool2d)]
    assert pools
    for place in pools:
        assert isinstance(found[place + 1], nn.ReLU)
        found[place], found[place + 1] = found[place + 1], found[place]
    return nn.Sequential(*found)


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        pytest.param(lenet, images(16, 1, 28, 28), id="lenet"),
        pytest.param(mnist_net, images(16, 1, 28, 28), id="mnist-net"),
        pytest.param(vgg9, images(4, 3, 32, 32), id="vgg9"),
        pytest.param(lambda: vgg9(10, 0.25), images(16, 3, 32, 32), id="vgg9-quarter"),
    ],
)
@pytest.mark.parametrize("format", [torch.contiguous_format, torch.channels_last])
def test_relu_may_come_after_the_pooling(make, inputs, format):
    """The same bits, in logits and gradients, as with ReLU before it."""
    torch.manual_seed(0)
    model = make().eval().to(memory_format=format)
    inputs = inputs.contiguous(memory_format=format)
    body = [relu_first(model.features), *model[1:]] if hasattr(model, "features") else None
    other = nn.Sequential(*body) if body else relu_first(model)
    logits, expected = model(inputs), other(inputs)
    assert torch.equal(logits, expected)
    parameters = list(model.parameters())
    gradients, slow = (
        torch.autograd.grad(cross_entropy(out, torch.arange(len(inputs)) % 10), parameters)
        for out in (logits, expected)
    )
    assert all(torch.equal(one, two) for one, two in zip(gradients, slow, strict=True))
    assert all(gradient.abs().max() > 0 for gradient in gradients)


def test_vgg9_keeps_the_size_of_its_signal():
    """He's start: the second moment of the activations neither fades nor explodes."""
    torch.manual_seed(0)
    model = vgg9(width=0.5)
    features = model.features(images(8, 3, 32, 32))
    assert 0.3 < features.square().mean().sqrt() < 30


def sigmoid(x):
    return 1 / (1 + (-x).exp())


def slow_lstm(model, rows):
    """Gates i, f, g, o; the last state of the last layer; then the head."""
    results = []
    for row in rows.tolist():
        steps = [model.embedding.weight[word] for word in row]
        for layer in range(model.lstm.num_layers):
            w_in, w_state, b_in, b_state = (
                getattr(model.lstm, f"{name}_l{layer}")
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            state = cell = torch.zeros(model.lstm.hidden_size)
            outputs = []
            for step in steps:
                i, f, g, o = (w_in @ step + b_in + w_state @ state + b_state).chunk(4)
                cell = sigmoid(f) * cell + sigmoid(i) * g.tanh()
                state = sigmoid(o) * cell.tanh()
                outputs.append(state)
            steps = outputs
        results.append(model.head.weight @ steps[-1] + model.head.bias)
    return torch.stack(results)


def test_lstm_step_by_step():
    model = LstmClassifier(20, embedding=5, hidden=4).eval()
    rows = words(3, 6, 20)
    rows[0, :4] = 0
    torch.testing.assert_close(model(rows), slow_lstm(model, rows))
    torch.testing.assert_close(model(rows.long()), model(rows))


def test_lstm_padding_is_zero_and_stays():
    model = LstmClassifier(20, embedding=5, hidden=4)
    rows = words(3, 6, 20)
    rows[:, 0] = 0
    model(rows).square().sum().backward()
    assert model.embedding.weight[0].tolist() == [0.0] * 5
    assert model.embedding.weight.grad[0].tolist() == [0.0] * 5


def test_lstm_drops_between_layers_and_before_the_head():
    model = LstmClassifier(20)
    assert (model.lstm.dropout, model.dropout.p) == (0.5, 0.5)
    assert LstmClassifier(20, layers=1).lstm.dropout == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vgg9(0), "classes must be >= 1, got 0"),
        (lambda: vgg9(width=0.0), "width must be > 0, got 0"),
        (lambda: LstmClassifier(0), "num_words must be >= 1, got 0"),
        (lambda: LstmClassifier(5, dropout=1.0), "dropout must be < 1, got 1"),
    ],
)
def test_bad_input_names_the_inequality(call, message):
    with pytest.raises(ValueError, match=message):
        call()
