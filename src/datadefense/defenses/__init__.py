"""All defenses by name, and those that other packages bring."""

import logging
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from datadefense.defenses.base import Combined, Defense, Promise, Rule, TooFewClientsError
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
from datadefense.settings import SettingsError, build, suggest

logger = logging.getLogger(__name__)

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

ENTRY_POINTS = "datadefense.defenses"
"""Entry point group in which another package names its defenses."""


def available() -> dict[str, type[Defense[Any]]]:
    """Return our defenses and, behind them, those of installed packages.

    Our names stay ours, and a package that cannot be loaded is left out with a warning in the log:
    somebody else's fault must not stop a run.
    """
    found: dict[str, type[Defense[Any]]] = {}
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name in DEFENSES:
            logger.warning("%s: the name %r is taken; left out", entry.value, entry.name)
            continue
        try:
            found[entry.name] = entry.load()
        except Exception as error:
            logger.warning("%s: cannot be loaded (%s); left out", entry.value, error)
    return {**DEFENSES, **dict(sorted(found.items()))}


def create(name: str, settings: Mapping[str, object] | None = None) -> Defense[Any]:
    """Make a defense by name from settings or their texts, as the command line does.

    ``some.module:SomeClass`` names a defense of one's own.

    >>> create("krum", {"num_malicious": 2})
    Krum(num_malicious=2)
    """
    return build(_own(name) if ":" in name else _known(name), settings or {})


def _known(name: str) -> type[Defense[Any]]:
    classes = available()
    if name not in classes:
        raise SettingsError(f"no defense is called {name!r}{suggest(name, classes)}")
    return classes[name]


def _own(name: str) -> type[Defense[Any]]:
    """Import a defense that is named by its module and class, for one that is not installed."""
    module, _, kind = name.partition(":")
    try:
        found = getattr(import_module(module), kind)
    except (ImportError, AttributeError, ValueError, TypeError, SyntaxError) as error:
        raise SettingsError(f"cannot import the defense {name!r}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Defense)):
        raise SettingsError(f"{name!r} must be a class of defenses, got {found!r}")
    return found


__all__ = [
    "DEFENSES",
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
