"""Whole models and updates are told apart: honest ones of both kinds, and attackers who pretend."""

import copy

import pytest
import torch
from tests.small_resnet import SmallResNet
from torch import nn

from datadefense import Gate, Layout, Submission, WrongKindError
from datadefense.core.sent_kind import check_kind, other_kind, wrong_kind

OTHER = {"models": "updates", "updates": "models"}


def cnn():
    return SmallResNet()


def dense():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 4))


def linear():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 4))


def trained(model, seed, steps, rate):
    """A client's model after some steps on data of its own, with a batch's worth of noise."""
    client = copy.deepcopy(model).train()
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(4, (40,), generator=draw)
    inputs = torch.randn(40, 1, 8, 8, generator=draw) + labels.view(-1, 1, 1, 1)
    optimiser = torch.optim.SGD(client.parameters(), rate, momentum=0.9, weight_decay=1e-3)
    for _ in range(steps):
        optimiser.zero_grad()
        nn.functional.cross_entropy(client(inputs), labels).backward()
        optimiser.step()
    return client.state_dict()


def honest(model, kind, clients=5, steps=5, rate=0.05):
    """What honest clients send, flat: whole models or updates."""
    layout = Layout.of_module(model)
    start = layout.flatten(model.state_dict())
    whole = [layout.flatten(trained(model, seed, steps, rate)) for seed in range(clients)]
    return layout, start, whole if kind == "models" else [one - start for one in whole]


def admitted(layout, start, sent, sends):
    submissions = [Submission(place, content, 10) for place, content in enumerate(sent)]
    return Gate(layout, sends=sends).admit(1, start, submissions)


def verdict(layout, start, sent, sends):
    return wrong_kind(admitted(layout, start, sent, sends), sends)


@pytest.mark.parametrize(
    ("make", "steps", "rate"),
    [
        (cnn, 1, 0.001),
        (cnn, 40, 0.05),  # a step of 0.65 of the model's norm
        (dense, 1, 0.001),
        (dense, 20, 0.01),
        (linear, 1, 0.001),
        (linear, 5, 0.03),
    ],
)
@pytest.mark.parametrize("kind", ["models", "updates"])
def test_honest_clients_are_told_apart_from_the_first_round_on(make, steps, rate, kind):
    torch.manual_seed(0)
    layout, start, sent = honest(make(), kind, steps=steps, rate=rate)
    assert verdict(layout, start, sent, kind) is None
    said = verdict(layout, start, sent, OTHER[kind])
    assert said.startswith(f"5 of 5 clients seem to send {kind}, not {OTHER[kind]}: ")
    assert f'say sends="{kind}"' in said


@pytest.mark.parametrize("kind", ["models", "updates"])
@pytest.mark.parametrize("rate", [0.5, 3.0])
def test_honest_clients_who_go_far_are_never_refused(kind, rate):
    """Steps longer than the model itself."""
    torch.manual_seed(0)
    for make in (cnn, dense, linear):
        layout, start, sent = honest(make(), kind, steps=30, rate=rate)
        assert verdict(layout, start, sent, kind) is None


@pytest.mark.parametrize("kind", ["models", "updates"])
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e-3])
def test_a_first_model_of_zeros_or_nearly_is_no_ground_to_refuse(kind, scale):
    """Both kinds are then the same, or nearly: nothing is lost by the wrong choice."""
    model = linear()
    for parameter in model.parameters():
        parameter.data.mul_(scale)
    layout, start, sent = honest(model, kind)
    assert verdict(layout, start, sent, "models") is None
    assert verdict(layout, start, sent, "updates") is None


def test_running_statistics_say_nothing():
    """They go from 1 to the data's in one round, further than all weights together."""
    model = nn.BatchNorm1d(500, affine=True)
    model.weight.data.fill_(0.1)
    layout = Layout.of_module(model)
    start = layout.flatten(model.state_dict())
    moved = {**model.state_dict(), "running_var": torch.full((500,), 1e-3)}
    sent = [layout.flatten(moved)] * 3
    assert verdict(layout, start, sent, "models") is None
    assert "3 of 3" in verdict(layout, start, sent, "updates")


@pytest.mark.parametrize("kind", ["models", "updates"])
def test_a_minority_never_has_the_round_refused(kind):
    torch.manual_seed(0)
    layout, start, sent = honest(dense(), kind, clients=9)
    _, _, liars = honest(dense(), OTHER[kind], clients=9)
    pretended = start.clone() if kind == "updates" else torch.zeros_like(start)
    for hostile in (pretended, liars[0], pretended * 1.01):
        for count in range(5):
            assert verdict(layout, start, [hostile] * count + sent[count:], kind) is None
        assert verdict(layout, start, [hostile] * 3 + sent[:3], kind) is None
    assert "5 of 9" in verdict(layout, start, [pretended] * 5 + sent[5:], kind)


@pytest.mark.parametrize("kind", ["models", "updates"])
def test_a_minority_does_not_hide_the_mistake(kind):
    torch.manual_seed(0)
    layout, start, sent = honest(dense(), kind, clients=9)
    huge = torch.full_like(start, 3e38)
    for hostile in (huge, -huge, torch.full_like(start, torch.nan), 1e6 * torch.randn_like(start)):
        said = verdict(layout, start, [hostile] * 4 + sent[4:], OTHER[kind])
        assert said.startswith(("5 of 9", "5 of 5"))


def test_one_client_alone_is_believed():
    torch.manual_seed(0)
    layout, start, sent = honest(dense(), "updates", clients=2)
    assert verdict(layout, start, sent[:1], "models") is None
    assert "2 of 2" in verdict(layout, start, sent, "models")
    assert verdict(layout, start, [], "models") is None


def test_clients_that_send_the_model_back_or_nothing_at_all():
    torch.manual_seed(0)
    layout, start, _ = honest(dense(), "models", clients=1)
    idle, silent = [start.clone()] * 3, [torch.zeros_like(start)] * 3
    assert verdict(layout, start, idle, "models") is None
    assert verdict(layout, start, silent, "updates") is None
    assert "seem to send models" in verdict(layout, start, idle, "updates")
    assert "seem to send updates" in verdict(layout, start, silent, "models")


@pytest.mark.parametrize(("quotient", "odd"), [(0.70, 3), (0.71, 0)])
def test_the_threshold_is_half_of_a_square(quotient, odd):
    """c = g / (1 + q) has the quotient q of the distances, and so has c = q g / (1 + q)."""
    layout = Layout.of_module(nn.Linear(7, 3))
    start = torch.linspace(-1, 2, 24)
    for sends, sent in (
        ("updates", start / (1 + quotient)),
        ("models", start * quotient / (1 + quotient)),
    ):
        round = admitted(layout, start, [sent] * 3, sends).round
        assert other_kind(round, layout, sends) == odd


def test_updates_that_repeat_all_that_was_learned_so_far_are_the_known_error():
    """A linear model from zero, with steps so short that the second round is the first again."""
    model = linear()
    for parameter in model.parameters():
        parameter.data.zero_()
    layout, start, first = honest(model, "updates", steps=1, rate=1e-4)
    after = start + torch.stack(first).mean(0)
    assert "seem to send models" in verdict(layout, after, first, "updates")


def test_the_check_raises():
    torch.manual_seed(0)
    layout, start, sent = honest(dense(), "models")
    check_kind(admitted(layout, start, sent, "models"), "models")
    with pytest.raises(WrongKindError, match="5 of 5 clients seem to send models, not updates"):
        check_kind(admitted(layout, start, sent, "updates"), "updates")
