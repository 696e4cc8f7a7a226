"""A little is enough: the update within the spread of honest trainings of the attacker's own."""

import pytest
import torch
from tests.attacks.situations import FEDERATION, context, no_dropout

from datadefense.attacks.lie import Lie, largest_z
from datadefense.core.settings import SettingsError


def test_largest_z():
    """50 clients, 24 attackers: the example of the paper, s = 2, z = 1.43 or so."""
    assert largest_z(50, 24) == pytest.approx(1.43, abs=0.02)
    assert largest_z(10, 1) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("clients", [1, 2, 5])
def test_a_round_of_attackers_only_has_supporters_enough(clients):
    assert largest_z(clients, clients) == pytest.approx(3.09 if clients > 2 else 0, abs=0.01)


def finished(attack, where):
    """What becomes of an update that is much too large."""
    data = FEDERATION.attacker_data
    return attack.finish(torch.full_like(where.start, 1e3), no_dropout(), data, where)


def upper_end(attack, where, z):
    """The mean and z deviations of honest trainings, slowly."""
    rows, worker, data = [], no_dropout(), FEDERATION.attacker_data
    for imitation in range(attack.imitations):
        draw = where.generator("imitation", imitation)
        half = torch.randperm(20, generator=draw)[:10]
        worker.load(where.start)
        worker.train(where.training, data.clean.take(half), draw)
        rows.append(torch.empty_like(where.start))
        worker.write_update(where.start, rows[-1])
    stacked = torch.stack(rows)
    return stacked.mean(0) + z * stacked.std(0)


def test_a_little_is_within_the_spread():
    attack, where = Lie(imitations=3, z=0.7), context()
    update = finished(attack, where)
    assert torch.allclose(update, upper_end(attack, where, 0.7), atol=1e-6)
    assert update.norm() < 10


def test_without_a_z_it_is_that_of_the_round():
    """The attacker is told how large a round is and how many attack."""
    attack, where = Lie(imitations=3), context(clients=50, attacker=(0, 24))
    expected = upper_end(attack, where, largest_z(50, 24))
    assert torch.allclose(finished(attack, where), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"imitations": 1}, "imitations must be >= 2, got 1"),
        ({"z": -1.0}, "z must be >= 0, got -1"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(SettingsError, match=message):
        Lie(**settings)
