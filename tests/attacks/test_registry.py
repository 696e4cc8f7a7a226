"""Attacks by name: ours, those of other packages, and classes by their module."""

from dataclasses import dataclass, fields
from importlib.metadata import EntryPoint
from typing import ClassVar

import pytest
import torch

from datadefense.attacks import ATTACKS, REGISTRY, Attack, Pgd, Sees, Threat
from datadefense.core import registry
from datadefense.core.registry import about
from datadefense.core.settings import SettingsError
from datadefense.runs.configure import configure


@dataclass(frozen=True)
class Loud(Attack):
    """Sends the same number everywhere."""

    loudness: float = 1.0

    name: ClassVar[str] = "loud"

    def update(self, trainer, data, context):
        return torch.full_like(context.start, self.loudness)


OWN = f"{__name__}:Loud"


def test_a_third_partys_attack_joins_by_entry_point(monkeypatch, datadefense_log):
    entries = [
        EntryPoint("loud", OWN, REGISTRY.group),
        EntryPoint("pgd", OWN, REGISTRY.group),
        EntryPoint("broken", "no.such.module:Thing", REGISTRY.group),
    ]
    monkeypatch.setattr(
        registry, "entry_points", lambda group: entries if group == REGISTRY.group else []
    )
    assert REGISTRY.find("loud") is Loud
    assert REGISTRY.find("pgd") is Pgd
    assert list(REGISTRY) == [*ATTACKS, "loud"]
    chosen = configure("digits-edge", "cpu", {"attack": "loud", "loudness": "2.5"})
    assert chosen.attack == Loud(2.5)
    assert chosen.name_of("attack") == "loud"
    assert "the name 'pgd' is taken" in datadefense_log.text
    assert "no.such.module:Thing: cannot be loaded" in datadefense_log.text


def test_an_attack_of_ones_own_is_named_by_its_module():
    chosen = configure("digits-edge", "cpu", {"attack": OWN, "attack.loudness": "2.5"})
    assert chosen.attack == Loud(2.5)
    assert chosen.name_of("attack") == OWN


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pgd-replacment", "no attack is called 'pgd-replacment', did you mean 'pgd-replacement'?"),
        ("zzz", "no attack is called 'zzz'; there are: absent, adaptive, black-box"),
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
