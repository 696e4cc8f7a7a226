"""From a name to a defense, alone or composed, and back."""

import sys
from importlib.metadata import EntryPoint

import pytest

from datadefense import create, name_of, settings_of
from datadefense.core import registry
from datadefense.core.settings import SettingsError
from datadefense.defenses import DEFENSES, MultiKrum, Pipeline
from datadefense.postaggregators import POSTAGGREGATORS, FedAdam
from datadefense.preaggregators import PREAGGREGATORS, Clip, Nnm

SOURCE = '''
from dataclasses import dataclass
from typing import ClassVar

import torch

from datadefense.core.preaggregator import Mixed, Mixer
from datadefense.core.settings import setting


@dataclass(frozen=True, slots=True)
class Half(Mixer):
    """Halve every update."""

    factor: float = setting(0.5, "what is left of an update")
    name: ClassVar[str] = "half"

    def mix(self, round, server):
        return Mixed(torch.full((round.num_clients,), self.factor, dtype=torch.float64))
'''


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module on the path, gone afterwards."""
    (tmp_path / "my_parts.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("my_parts", None)


@pytest.mark.parametrize("name", [*DEFENSES, "nnm+krum", "clip+bucketing+rfa", "median+fedadam"])
def test_name_and_settings_are_all_there_is_to_store(name):
    made = create(name)
    assert name_of(made) == name
    assert create(name_of(made), settings_of(made)) == made


def test_every_part_can_stand_in_a_name():
    for before in PREAGGREGATORS:
        for after in POSTAGGREGATORS:
            made = create(f"{before}+fedavg+{after}")
            assert made.name == name_of(made) == f"{before}+fedavg+{after}"


def test_settings_of_parts():
    made = create(
        "clip+nnm+multi-krum+fedadam",
        {"nnm.num_malicious": "2", "multi-krum.num_malicious": "3", "tau": "0.1", "norm_bound": 2},
    )
    assert made == Pipeline(
        (Clip(norm_bound=2), Nnm(num_malicious=2)), MultiKrum(num_malicious=3), (FedAdam(tau=0.1),)
    )
    assert made == create(
        "clip+nnm+multi-krum+fedadam",
        {
            "clip": {"norm_bound": 2},
            "nnm": {"num_malicious": 2},
            "multi-krum": {"num_malicious": 3},
            "fedadam": {"tau": 0.1},
        },
    )
    assert settings_of(made)["clip.norm_bound"] == 2


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("nmn+krum", {}, r"no part of 'nmn\+krum' is called 'nmn', did you mean 'nnm'"),
        ("nnm+", {}, "is called ''"),
        ("nnm", {}, r"nnm is a pre-aggregator, not a defense: write nnm\+median"),
        ("fedadam", {}, r"fedadam is a post-aggregator, not a defense: write median\+fedadam"),
        (
            "datadefense.preaggregators.clip:Clip",
            {},
            r"Clip is a pre-aggregator, not a defense: write .*clip:Clip\+median",
        ),
        ("nnm+clip", {}, "must have one defense, got 0"),
        ("krum+median", {}, "must have one defense, got 2: krum and median"),
        ("krum+nnm", {}, r"'krum\+nnm': krum is a defense; the order is pre-aggregators, defense"),
        ("fedadam+krum", {}, "fedadam is a post-aggregator; the order is"),
        ("clip+clip+krum", {}, "once, clip is there twice"),
        ("nnm+krum", {"num_malicious": 1}, "of nnm and krum: set nnm.num_malicious or krum.num_m"),
        ("nnm+krum", {"nnm.f": 1}, "Nnm has no setting 'f'"),
        ("nnm+krum", {"arc.num_malicious": 1}, r"no part of 'nnm\+krum' is called 'arc'"),
        ("clip+krum", {"norm_bond": 1}, "has no setting 'norm_bond', did you mean 'clip.norm_boun"),
        ("clip+krum", {"norm_bound": 1, "clip.norm_bound": 2}, "'norm_bound' of clip is set twice"),
        ("clip+krum", {"norm_bound": "x"}, "norm_bound must be a number or none, got 'x'"),
        ("no_such_module:Thing+krum", {}, "cannot import the defense 'no_such_module:Thing'"),
    ],
)
def test_what_cannot_be_made(name, settings, message):
    with pytest.raises(SettingsError, match=message):
        create(name, settings)


@pytest.mark.usefixtures("mine")
def test_a_part_of_ones_own():
    made = create("my_parts:Half+krum", {"my_parts:Half.factor": "0.25"})
    assert (made.name, made.before[0].factor) == ("half+krum", 0.25)
    assert name_of(made) == "my_parts:Half+krum"
    assert create(name_of(made), settings_of(made)) == made


def test_a_part_of_an_installed_package(monkeypatch):
    def entries(group):
        theirs = EntryPoint("theirs", "datadefense.preaggregators:Arc", group)
        return [theirs] if group == "datadefense.preaggregators" else []

    monkeypatch.setattr(registry, "entry_points", entries)
    assert create("theirs+krum", {"theirs.num_malicious": 3}).before[0].num_malicious == 3
