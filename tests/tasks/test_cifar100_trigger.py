"""cifar100-trigger: fish with a patch called babies."""

import pytest
from tests.tasks.fake_images import use_fake_images
from tests.tasks.trigger_tasks import check_trigger

from datadefense.attacks.poison import FISH_TO_BABIES
from datadefense.core.settings import SettingsError
from datadefense.tasks.base import Aim
from datadefense.tasks.cifar100_trigger import Cifar100Trigger


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    use_fake_images(monkeypatch)


def test_the_trigger_is_on_fish():
    data = Cifar100Trigger(attack_poison=20).load(None, 0)
    assert data.aim == Aim(FISH_TO_BABIES.sources, 2)
    check_trigger(data, 8)
    assert len(data.backdoor_test) == FISH_TO_BABIES.num_test


def test_the_model_has_a_hundred_answers():
    data = Cifar100Trigger(width=0.25).load(None, 0)
    assert data.module.eval()(data.test.inputs[:2]).shape == (2, 100)


def test_the_first_model_is_as_good_as_the_papers():
    presets = Cifar100Trigger.presets
    assert presets["paper"]["warm"]["accuracy_percent"] == 50.43
    assert presets["cpu"]["warm"]["accuracy_percent"] == 25.0


def test_a_trigger_that_cannot_be():
    with pytest.raises(SettingsError, match="trigger_size must be >= 1, got 0"):
        Cifar100Trigger(trigger_size=0)
