"""emnist-ardis: sevens of another hand called ones."""

import pytest
import torch
from tests.tasks.fake_images import fake_images, use_fake_images

from datadefense.core.content import content_keys
from datadefense.data.digits import uci_sevens
from datadefense.tasks.base import Aim
from datadefense.tasks.emnist_ardis import EmnistArdis


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    use_fake_images(monkeypatch)


def test_poison_is_the_sevens_of_ardis():
    data = EmnistArdis().load(None, 0)
    assert data.aim == Aim((7,), 1)
    assert not data.few_poisoned
    for part, held in (
        ("train", data.attacker.poison),
        ("train", data.server_poison),
        ("test", data.backdoor_test),
    ):
        digits = fake_images("ardis", None, part)
        sevens = set(content_keys(digits.inputs[digits.labels == 7]))
        assert set(content_keys(held.inputs)) <= sevens


def test_sevens_of_uci_are_dealt_in_halves():
    pytest.importorskip("sklearn")
    data = EmnistArdis(sevens="uci").load(None, 0)
    strange = set(content_keys((255 * uci_sevens()).round().to(torch.uint8)))
    parts = (data.attacker.poison, data.server_poison, data.backdoor_test)
    assert set.union(*(set(content_keys(part.inputs)) for part in parts)) == strange
    assert len(data.attacker.poison) == 66
    assert abs(len(data.server_poison) - len(data.backdoor_test)) <= 1
    assert data.few_poisoned, "the server may want more than there are"


@pytest.mark.parametrize("dataset", ["emnist-digits", "mnist"])
def test_whose_digits(dataset):
    data = EmnistArdis(dataset=dataset).load(None, 0)
    assert torch.equal(data.test.inputs, fake_images(dataset, None, "test").inputs)
    assert data.module.eval()(data.test.inputs[:2]).shape == (2, 10)
    assert data.augment is None
