"""All defenses by name, alone and composed, and those that other packages bring."""

from datadefense.core.defense import Combined, Defense, Promise, Rule, TooFewClientsError
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
from datadefense.defenses.naming import available, create, name_of, named_parts, settings_of
from datadefense.defenses.norm_clip import Ndc, NdcAdaptive, WeakDp
from datadefense.defenses.pipeline import Pipeline
from datadefense.defenses.registry import DEFENSES, REGISTRY
from datadefense.defenses.rfa import Rfa
from datadefense.defenses.rlr import Rlr
from datadefense.defenses.signguard import SignGuard
from datadefense.defenses.sparsefed import SparseFed
from datadefense.defenses.weighted import WeightedMedian, WeightedTrimmedMean

__all__ = [
    "DEFENSES",
    "REGISTRY",
    "AlignIns",
    "Bulyan",
    "Caf",
    "CenteredClipping",
    "Combined",
    "DataDefense",
    "DataDefenseAppendix",
    "DataDefenseLearned",
    "DataDefensePaper",
    "DataDefenseReleased",
    "Defense",
    "Dnc",
    "FedAvg",
    "FlTrust",
    "Flame",
    "FoolsGold",
    "Krum",
    "Median",
    "MultiKrum",
    "MultiMetrics",
    "Ndc",
    "NdcAdaptive",
    "Pipeline",
    "Promise",
    "Rfa",
    "Rlr",
    "Rule",
    "SignGuard",
    "SparseFed",
    "TooFewClientsError",
    "TrimmedMean",
    "WeakDp",
    "WeightedMedian",
    "WeightedTrimmedMean",
    "available",
    "create",
    "name_of",
    "named_parts",
    "settings_of",
]
