"""cifar10-trigger: cars with a patch called birds."""

import pytest
from tests.tasks.fake_images import use_fake_images
from tests.tasks.trigger_tasks import check_trigger

from datadefense.core.settings import SettingsError
from datadefense.tasks.base import Aim
from datadefense.tasks.cifar10_trigger import Cifar10Trigger
from datadefense.tasks.models.vgg9 import vgg9


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    use_fake_images(monkeypatch)


@pytest.mark.parametrize("size", [8, 4])
def test_the_trigger_is_on_cars(size):
    data = Cifar10Trigger(attack_poison=20, trigger_size=size).load(None, 0)
    assert data.aim == Aim((1,), 2)
    check_trigger(data, size)


def test_a_trigger_of_full_weight_hides_what_is_below():
    faint, full = (
        Cifar10Trigger(attack_poison=20, trigger_weight=weight).load(None, 0)
        for weight in (0.1, 1.0)
    )
    away = [
        (data.attacker.poison.inputs.int() - data.originals[:20].int()).abs().sum().item()
        for data in (faint, full)
    ]
    assert away[0] < away[1] / 5


def test_the_model_takes_pixels_and_has_ten_answers():
    data = Cifar10Trigger(width=0.25).load(None, 0)
    assert data.module.eval()(data.test.inputs[:2]).shape == (2, 10)
    weights = sum(weight.numel() for weight in vgg9(10, 0.25).parameters())
    assert sum(weight.numel() for weight in data.module.parameters()) == weights


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trigger_size": 0}, "trigger_size must be >= 1, got 0"),
        ({"trigger_weight": 1.5}, "trigger_weight must be <= 1, got 1.5"),
        ({"trigger_weight": 0}, "trigger_weight must be > 0, got 0"),
    ],
)
def test_a_trigger_that_cannot_be(settings, message):
    with pytest.raises(SettingsError, match=message):
        Cifar10Trigger(**settings)
