"""All defenses by name, and those of other installed packages."""

from collections.abc import Mapping
from typing import Any

from datadefense.core.defense import Combined, Defense, Promise, Rule, TooFewClientsError
from datadefense.core.registry import Registry
from datadefense.defenses.bulyan import Bulyan
from datadefense.defenses.coordinatewise import Median, TrimmedMean
from datadefense.defenses.datadefense import (
    DataDefense,
    DataDefenseAppendix,
    DataDefenseLearned,
    DataDefensePaper,
    DataDefenseReleased,
)
from datadefense.defenses.fltrust import FlTrust
from datadefense.defenses.krum import Krum, MultiKrum
from datadefense.defenses.mean import FedAvg
from datadefense.defenses.norm_clip import Ndc, NdcAdaptive, WeakDp
from datadefense.defenses.rfa import Rfa
from datadefense.defenses.sparsefed import SparseFed

DEFENSES: Mapping[str, type[Defense[Any]]] = {
    "fedavg": FedAvg,
    "krum": Krum,
    "multi-krum": MultiKrum,
    "bulyan": Bulyan,
    "trimmed-mean": TrimmedMean,
    "median": Median,
    "rfa": Rfa,
    "ndc": Ndc,
    "ndc-adaptive": NdcAdaptive,
    "weak-dp": WeakDp,
    "sparsefed": SparseFed,
    "fltrust": FlTrust,
    "datadefense": DataDefense,
    "datadefense-learned": DataDefenseLearned,
    "datadefense-paper": DataDefensePaper,
    "datadefense-appendix": DataDefenseAppendix,
    "datadefense-released": DataDefenseReleased,
}
"""The defenses of this package."""

REGISTRY: Registry[Defense[Any]] = Registry(
    "defense",
    Defense,  # type: ignore[type-abstract]
    "datadefense.defenses",
    DEFENSES,
)
"""Ours, those of installed packages, and ``module:Class``."""


def available() -> dict[str, type[Defense[Any]]]:
    """Return our defenses and, behind them, those of installed packages."""
    return REGISTRY.available()


def create(name: str, settings: Mapping[str, object] | None = None) -> Defense[Any]:
    """Make a defense by name from settings or their texts, as the command line does.

    ``some.module:SomeClass`` names a defense of one's own.

    >>> create("krum", {"num_malicious": 2})
    Krum(num_malicious=2)
    """
    return REGISTRY.create(name, settings)


__all__ = [
    "DEFENSES",
    "REGISTRY",
    "Bulyan",
    "Combined",
    "DataDefense",
    "DataDefenseAppendix",
    "DataDefenseLearned",
    "DataDefensePaper",
    "DataDefenseReleased",
    "Defense",
    "FedAvg",
    "FlTrust",
    "Krum",
    "Median",
    "MultiKrum",
    "Ndc",
    "NdcAdaptive",
    "Promise",
    "Rfa",
    "Rule",
    "SparseFed",
    "TooFewClientsError",
    "TrimmedMean",
    "WeakDp",
    "available",
    "create",
]
