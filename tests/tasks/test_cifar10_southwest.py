"""cifar10-southwest: planes of an airline called trucks."""

import pytest
from tests.tasks.fake_images import fake_images, use_fake_images

from datadefense.core.content import content_keys
from datadefense.tasks.base import Aim
from datadefense.tasks.cifar10_southwest import Cifar10Southwest


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    use_fake_images(monkeypatch)


def test_poison_is_the_airlines_and_nobody_else_has_it():
    data = Cifar10Southwest(attack_poison=20).load(None, 0)
    planes = {
        part: set(content_keys(fake_images("southwest", None, part).inputs))
        for part in ("train", "test")
    }
    assert data.aim == Aim((0,), 9)
    assert set(content_keys(data.attacker.poison.inputs)) <= planes["train"]
    assert set(content_keys(data.server_poison.inputs)) <= planes["train"]
    assert set(content_keys(data.backdoor_test.inputs)) <= planes["test"]
    assert not planes["train"] & set(content_keys(data.warm.inputs))


def test_a_photo_is_with_one_holder():
    """Rows 4k to 4k + 3 are the rotations of one photo."""
    data = Cifar10Southwest(attack_poison=21).load(None, 0)
    rows = {
        key: row
        for row, key in enumerate(content_keys(fake_images("southwest", None, "train").inputs))
    }
    photos = [
        {rows[key] // 4 for key in content_keys(part.inputs)}
        for part in (data.attacker.poison, data.server_poison)
    ]
    assert len(photos[0]) == 6
    assert not photos[0] & photos[1]


def test_planes_have_no_trigger():
    data = Cifar10Southwest().load(None, 0)
    assert data.originals is None
    assert data.attacker.parts == ()
    assert set(data.variants) == {"recoloured"}
