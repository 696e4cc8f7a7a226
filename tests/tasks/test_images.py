"""What image tasks have in common: who holds which images, on noise in the place of real data."""

import pytest
import torch
from tests.tasks.fake_images import use_fake_images

from datadefense.core.content import content_keys
from datadefense.core.settings import SettingsError
from datadefense.tasks import REGISTRY
from datadefense.tasks.cifar import cifar_presets
from datadefense.tasks.images import SERVER, Held

CASES = [
    ("cifar10-label-flip", {}),
    ("cifar10-southwest", {}),
    ("cifar10-trigger", {}),
    ("emnist-ardis", {}),
    ("emnist-ardis", {"dataset": "mnist", "sevens": "uci"}),
]


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    use_fake_images(monkeypatch)


def loaded(name, seed=0, **settings):
    return REGISTRY.create(name, settings).load(None, seed)


def keys(examples):
    return set(content_keys(examples.inputs))


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_clean_images_have_one_holder_each(name, settings):
    data = loaded(name, **settings, attack_clean=30)
    assert len(data.server_clean) == SERVER
    assert len(data.attacker.clean) == 30
    assert len(data.clients) == len(data.warm) - SERVER - 30
    held = [keys(part) for part in (data.server_clean, data.attacker.clean, data.clients)]
    assert len(set.union(*held)) == sum(map(len, held)) == len(data.warm)


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_poison_has_one_holder_each(name, settings):
    data = loaded(name, **settings, attack_poison=20)
    assert len(data.attacker.poison) == 20
    held = [keys(part) for part in (data.attacker.poison, data.server_poison, data.backdoor_test)]
    assert all(held)
    assert len(set.union(*held)) == sum(map(len, held))
    for part in (data.attacker.poison, data.server_poison, data.backdoor_test):
        assert set(part.labels.tolist()) == {data.aim.target}


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_the_seed_decides_who_holds_what(name, settings):
    first, again, other = (loaded(name, seed, **settings) for seed in (0, 0, 1))
    assert torch.equal(first.clients.inputs, again.clients.inputs)
    assert torch.equal(first.attacker.poison.inputs, again.attacker.poison.inputs)
    assert not torch.equal(first.clients.inputs, other.clients.inputs)
    assert not torch.equal(first.attacker.poison.inputs, other.attacker.poison.inputs)


@pytest.mark.parametrize("name", ["cifar10-label-flip", "cifar10-southwest", "cifar10-trigger"])
def test_with_the_authors_the_server_has_the_attackers_poison(name):
    data = loaded(name, overlap="authors")
    assert torch.equal(data.server_poison.inputs, data.attacker.poison.inputs)


@pytest.mark.parametrize(("wanted", "there"), [("true", True), ("false", False)])
def test_crops_and_flips_can_be_left_out(wanted, there):
    assert (loaded("cifar10-trigger", augment=wanted).augment is not None) is there


def test_the_width_is_a_factor_on_the_channels():
    sizes = [
        sum(weight.numel() for weight in loaded("cifar10-trigger", width=width).module.parameters())
        for width in ("0.25", "0.5")
    ]
    assert 2 * sizes[0] < sizes[1]


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("cifar10-trigger", {"attack_clean": "-1"}, "attack_clean must be >= 0, got -1"),
        ("cifar10-label-flip", {"attack_poison": "0"}, "attack_poison must be >= 1, got 0"),
        ("emnist-ardis", {"attack_poison": "0"}, "attack_poison must be >= 1, got 0"),
        ("cifar10-southwest", {"width": "0"}, "width must be > 0, got 0"),
        ("cifar10-southwest", {"overlap": "some"}, "overlap must be none or authors, got 'some'"),
    ],
)
def test_what_cannot_be_is_said_before_data_are_read(name, settings, message):
    with pytest.raises(SettingsError, match=message):
        REGISTRY.create(name, settings)


def test_how_many_examples_attackers_hold():
    assert Held(0, 1, "none", "none").clean == 0
    with pytest.raises(SettingsError, match="attack_poison must be >= 1, got 0"):
        Held(0, 0, "none", "none")


def test_presets_have_the_papers_radii_and_ours():
    presets = cifar_presets(0.5, 0.083, 1.0)
    paper, cpu = presets["paper"], presets["cpu"]
    assert (paper["attack"]["radius"], paper["attack"]["replacement_radius"]) == (0.5, 0.083)
    assert (cpu["attack"]["radius"], cpu["attack"]["replacement_radius"]) == (1.0, 1.0)
    assert (paper["federation"]["rounds"], cpu["federation"]["rounds"]) == (1500, 30)
    assert (paper["warm"]["accuracy_percent"], cpu["warm"]["accuracy_percent"]) == (76.08, 72.0)
