"""cifar10-label-flip: cars called birds."""

import pytest
from tests.tasks.fake_images import fake_images, use_fake_images

from datadefense.core.content import content_keys
from datadefense.tasks.base import Aim
from datadefense.tasks.cifar10_label_flip import Cifar10LabelFlip


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    use_fake_images(monkeypatch)


def test_poison_is_cars_as_they_are():
    data = Cifar10LabelFlip(attack_poison=20).load(None, 0)
    assert data.aim == Aim((1,), 2)
    for part, held in (
        ("train", data.attacker.poison),
        ("train", data.server_poison),
        ("test", data.backdoor_test),
    ):
        images = fake_images("cifar10", None, part)
        cars = set(content_keys(images.inputs[images.labels == 1]))
        assert set(content_keys(held.inputs)) <= cars


def test_cars_have_no_trigger():
    data = Cifar10LabelFlip().load(None, 0)
    assert data.originals is None
    assert data.attacker.parts == ()
    assert set(data.variants) == {"recoloured"}
