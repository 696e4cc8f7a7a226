"""The defenses of this package by name, and how those of others are found."""

from collections.abc import Mapping
from typing import Any

from datadefense.core.defense import Defense
from datadefense.core.registry import Registry
from datadefense.defenses.alignins import AlignIns
from datadefense.defenses.bulyan import Bulyan
from datadefense.defenses.caf import Caf
from datadefense.defenses.centered_clipping import CenteredClipping
from datadefense.defenses.coordinatewise import Median, TrimmedMean
from datadefense.defenses.datadefense import (
    DataDefense,
    DataDefenseAppendix,
    DataDefenseLearned,
    DataDefensePaper,
    DataDefenseReleased,
)
from datadefense.defenses.dnc import Dnc
from datadefense.defenses.flame import Flame
from datadefense.defenses.fltrust import FlTrust
from datadefense.defenses.foolsgold import FoolsGold
from datadefense.defenses.krum import Krum, MultiKrum
from datadefense.defenses.mean import FedAvg
from datadefense.defenses.multi_metrics import MultiMetrics
from datadefense.defenses.norm_clip import Ndc, NdcAdaptive, WeakDp
from datadefense.defenses.rfa import Rfa
from datadefense.defenses.rlr import Rlr
from datadefense.defenses.signguard import SignGuard
from datadefense.defenses.sparsefed import SparseFed
from datadefense.defenses.weighted import WeightedMedian, WeightedTrimmedMean

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
    "flame": Flame,
    "foolsgold": FoolsGold,
    "rlr": Rlr,
    "dnc": Dnc,
    "alignins": AlignIns,
    "centered-clipping": CenteredClipping,
    "multi-metrics": MultiMetrics,
    "weighted-median": WeightedMedian,
    "weighted-trimmed-mean": WeightedTrimmedMean,
    "signguard": SignGuard,
    "caf": Caf,
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
