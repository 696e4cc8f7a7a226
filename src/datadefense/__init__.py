"""DataDefense: keep a federated model free of backdoors.

A round is a matrix of client updates; a defense turns it into a new global model. The names below
are the public surface; they are imported on first use, so that ``import datadefense`` is quick.
"""

import importlib
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datadefense.attacks.base import Attack as Attack
    from datadefense.attacks.base import AttackContext as AttackContext
    from datadefense.attacks.base import AttackerData as AttackerData
    from datadefense.attacks.base import Threat as Threat
    from datadefense.core.defend import defend as defend
    from datadefense.core.defense import Combined as Combined
    from datadefense.core.defense import Defense as Defense
    from datadefense.core.defense import Promise as Promise
    from datadefense.core.defense import Rule as Rule
    from datadefense.core.defense_set import DefenseSet as DefenseSet
    from datadefense.core.examples import Examples as Examples
    from datadefense.core.features import penultimate as penultimate
    from datadefense.core.gate import Admission as Admission
    from datadefense.core.gate import Gate as Gate
    from datadefense.core.gate import Rejection as Rejection
    from datadefense.core.gate import Submission as Submission
    from datadefense.core.predictor import Layout as Layout
    from datadefense.core.predictor import predictor as predictor
    from datadefense.core.round import Aggregate as Aggregate
    from datadefense.core.round import Round as Round
    from datadefense.core.server import Server as Server
    from datadefense.core.storage import load_state as load_state
    from datadefense.core.storage import save_state as save_state
    from datadefense.defenses import DEFENSES as DEFENSES
    from datadefense.defenses import available as available
    from datadefense.defenses import create as create
    from datadefense.kernels.spill import Spill as Spill
    from datadefense.schedules.base import Schedule as Schedule
    from datadefense.tasks.base import Task as Task
    from datadefense.tasks.base import TaskData as TaskData
    from datadefense.tasks.own import OwnTask as OwnTask

__version__ = "0.1.0"

_HOMES = {
    "Admission": "datadefense.core.gate",
    "Aggregate": "datadefense.core.round",
    "Attack": "datadefense.attacks.base",
    "AttackContext": "datadefense.attacks.base",
    "AttackerData": "datadefense.attacks.base",
    "Combined": "datadefense.core.defense",
    "DEFENSES": "datadefense.defenses",
    "Defense": "datadefense.core.defense",
    "DefenseSet": "datadefense.core.defense_set",
    "Examples": "datadefense.core.examples",
    "Gate": "datadefense.core.gate",
    "Layout": "datadefense.core.predictor",
    "OwnTask": "datadefense.tasks.own",
    "Promise": "datadefense.core.defense",
    "Rejection": "datadefense.core.gate",
    "Round": "datadefense.core.round",
    "Rule": "datadefense.core.defense",
    "Schedule": "datadefense.schedules.base",
    "Server": "datadefense.core.server",
    "Spill": "datadefense.kernels.spill",
    "Submission": "datadefense.core.gate",
    "Task": "datadefense.tasks.base",
    "TaskData": "datadefense.tasks.base",
    "Threat": "datadefense.attacks.base",
    "available": "datadefense.defenses",
    "create": "datadefense.defenses",
    "defend": "datadefense.core.defend",
    "load_state": "datadefense.core.storage",
    "penultimate": "datadefense.core.features",
    "predictor": "datadefense.core.predictor",
    "save_state": "datadefense.core.storage",
}
__all__ = [
    "DEFENSES",
    "Admission",
    "Aggregate",
    "Attack",
    "AttackContext",
    "AttackerData",
    "Combined",
    "Defense",
    "DefenseSet",
    "Examples",
    "Gate",
    "Layout",
    "OwnTask",
    "Promise",
    "Rejection",
    "Round",
    "Rule",
    "Schedule",
    "Server",
    "Spill",
    "Submission",
    "Task",
    "TaskData",
    "Threat",
    "__version__",
    "available",
    "create",
    "defend",
    "load_state",
    "penultimate",
    "predictor",
    "save_state",
]

logging.getLogger(__name__).addHandler(logging.NullHandler())


if not TYPE_CHECKING:  # a type checker that sees this believes in any name

    def __getattr__(name: str) -> object:
        if name in _HOMES:
            value = getattr(importlib.import_module(_HOMES[name]), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
