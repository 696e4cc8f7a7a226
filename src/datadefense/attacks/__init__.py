"""All attacks by name, and those that other packages bring."""

from collections.abc import Mapping

from datadefense.attacks.absent import Absent
from datadefense.attacks.adaptive import Adaptive
from datadefense.attacks.base import Attack, AttackContext, AttackerData, Sees, Threat
from datadefense.attacks.black_box import BlackBox
from datadefense.attacks.chameleon import Chameleon
from datadefense.attacks.constrain import ConstrainAndScale
from datadefense.attacks.data_poisoning import DataPoisoning
from datadefense.attacks.dba import Dba
from datadefense.attacks.drip import Drip
from datadefense.attacks.fang_krum import FangKrum
from datadefense.attacks.fang_trim import FangTrim
from datadefense.attacks.gaussian import Gaussian
from datadefense.attacks.idle import Idle
from datadefense.attacks.ipm import Ipm
from datadefense.attacks.lie import Lie
from datadefense.attacks.lp import Lp
from datadefense.attacks.mimic import Mimic
from datadefense.attacks.min_max import MinMax
from datadefense.attacks.min_sum import MinSum
from datadefense.attacks.model_replacement import ModelReplacement
from datadefense.attacks.neurotoxin import Neurotoxin
from datadefense.attacks.oracle import Oracle
from datadefense.attacks.pgd import Pgd, PgdReplacement
from datadefense.attacks.poisoned_fl import PoisonedFl
from datadefense.attacks.poisoned_training import OwnTraining, PoisonedTraining
from datadefense.attacks.sign_flip import SignFlip
from datadefense.attacks.soda import Soda
from datadefense.attacks.untargeted import Untargeted
from datadefense.core.registry import Registry

ATTACKS: Mapping[str, type[Attack]] = {
    attack.name: attack
    for attack in (
        DataPoisoning,
        BlackBox,
        Pgd,
        PgdReplacement,
        Neurotoxin,
        Dba,
        Lie,
        ConstrainAndScale,
        Lp,
        Soda,
        Chameleon,
        Adaptive,
        Drip,
        Oracle,
        MinMax,
        MinSum,
        FangTrim,
        FangKrum,
        Ipm,
        SignFlip,
        Mimic,
        Gaussian,
        PoisonedFl,
        Idle,
        Absent,
    )
}
"""The attacks of this package."""
NONE = "none"
"""Name of the attack where nobody attacks."""

REGISTRY: Registry[Attack] = Registry(
    "attack",
    Attack,  # type: ignore[type-abstract]
    "datadefense.attacks",
    ATTACKS,
    also=(NONE,),
)
"""Ours, those of installed packages, and ``module:Class``."""

__all__ = [
    "ATTACKS",
    "NONE",
    "REGISTRY",
    "Absent",
    "Adaptive",
    "Attack",
    "AttackContext",
    "AttackerData",
    "BlackBox",
    "Chameleon",
    "ConstrainAndScale",
    "DataPoisoning",
    "Dba",
    "Drip",
    "FangKrum",
    "FangTrim",
    "Gaussian",
    "Idle",
    "Ipm",
    "Lie",
    "Lp",
    "Mimic",
    "MinMax",
    "MinSum",
    "ModelReplacement",
    "Neurotoxin",
    "Oracle",
    "OwnTraining",
    "Pgd",
    "PgdReplacement",
    "PoisonedFl",
    "PoisonedTraining",
    "Sees",
    "SignFlip",
    "Soda",
    "Threat",
    "Untargeted",
]
