"""Attacks by name: ours, those of other packages, and classes by their module."""

from dataclasses import dataclass, fields
from typing import ClassVar

import pytest
import torch
from tests.plugin_registry import is_configured_by, joins_by_entry_point

from datadefense.attacks import ATTACKS, REGISTRY, Attack, Sees, Threat
from datadefense.core.registry import about
from datadefense.core.settings import SettingsError


@dataclass(frozen=True)
class Loud(Attack):
    """Sends the same number everywhere."""

    loudness: float = 1.0

    name: ClassVar[str] = "loud"

    def update(self, trainer, data, context):
        return torch.full_like(context.start, self.loudness)


OWN = f"{__name__}:Loud"


def test_a_third_partys_attack_joins_by_entry_point(monkeypatch, datadefense_log):
    joins_by_entry_point(REGISTRY, Loud(2.5), "pgd", monkeypatch, datadefense_log)


def test_an_attack_of_ones_own_is_named_by_its_module():
    is_configured_by("attack", Loud(2.5), OWN, "attack.")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pgd-replacment", "no attack is called 'pgd-replacment', did you mean 'pgd-replacement'?"),
        ("zzz", "no attack is called 'zzz'; there are: absent, adaptive, black-box"),
        ("zzz", "neurotoxin, none, oracle, .*, soda, or module:Class of your own"),
        ("tests.attacks.test_registry:OWN", "must be a class of attacks"),
        ("datadefense.schedules:Never", "must be a class of attacks"),
    ],
)
def test_a_name_that_leads_nowhere(name, message):
    with pytest.raises(SettingsError, match=message):
        REGISTRY.find(name)


@pytest.mark.parametrize("name", ATTACKS)
def test_each_of_ours_says_what_it_is(name):
    kind = ATTACKS[name]
    assert REGISTRY.name_of(kind()) == kind.name == name
    assert about(kind).endswith(".")
    assert isinstance(kind.threat, Threat)
    assert isinstance(kind().sees(), Sees)
    for field in fields(kind):
        assert field.metadata["help"]


@pytest.mark.parametrize(
    ("threat", "words"),
    [
        (Threat(), "knows own data"),
        (Threat("the rule"), "knows the rule"),
        (Threat(attackers=2), "knows own data; 2 or more in a round"),
        (Threat(trains_longer=True), "knows own data; trains longer"),
        (Threat(scales=True), "knows own data; scales its update"),
        (
            Threat("all", 3, trains_longer=True, scales=True),
            "knows all; 3 or more in a round; trains longer; scales its update",
        ),
    ],
)
def test_a_threat_in_words(threat, words):
    assert threat.words() == words
