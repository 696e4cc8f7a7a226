"""Setups by name, and the share of malicious clients as short for a fixed pool."""

import pytest

from datadefense.core.settings import SettingsError
from datadefense.runs.presets import experiment


@pytest.mark.parametrize(("share", "pool"), [("0.2", 10), ("0.4", 20), ("0.001", 1), ("1", 50)])
def test_a_share_of_malicious_clients_is_a_pool_of_that_size(share, pool):
    chosen = experiment("digits-edge", "cpu", {"malicious": share})
    assert (chosen.schedule, chosen.pool) == ("fixed-pool", pool)
    assert chosen == experiment("digits-edge", "cpu", {"schedule": "fixed-pool", "pool": str(pool)})


def test_the_share_is_of_the_clients_that_were_asked_for():
    assert experiment("digits-edge", "cpu", {"malicious": "0.2", "clients": "30"}).pool == 6


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"malicious": "0"}, "malicious must be > 0, got 0"),
        ({"malicious": "1.5"}, "malicious must be <= 1, got 1.5"),
        ({"malicious": "many"}, "malicious must be a number, got 'many'"),
        ({"malicious": "0.2", "pool": "3"}, "malicious sets pool already"),
    ],
)
def test_a_share_that_makes_no_sense_is_refused(changes, words):
    with pytest.raises(SettingsError, match=words):
        experiment("digits-edge", "cpu", changes)
