"""DataDefense: keep a federated model free of backdoors.

A round is a matrix of client updates; a defense turns it into a new global model. The names below
are the public surface; they are imported on first use, so that ``import datadefense`` is quick.
"""

import importlib
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datadefense.defended_round import defend as defend
    from datadefense.defense_set import DefenseSet as DefenseSet
    from datadefense.defenses import DEFENSES as DEFENSES
    from datadefense.defenses import available as available
    from datadefense.defenses import create as create
    from datadefense.defenses.base import Combined as Combined
    from datadefense.defenses.base import Defense as Defense
    from datadefense.defenses.base import Promise as Promise
    from datadefense.defenses.base import Rule as Rule
    from datadefense.examples import Examples as Examples
    from datadefense.gate import Admission as Admission
    from datadefense.gate import Gate as Gate
    from datadefense.gate import Rejection as Rejection
    from datadefense.gate import Submission as Submission
    from datadefense.models.features import penultimate as penultimate
    from datadefense.params import Layout as Layout
    from datadefense.params import predictor as predictor
    from datadefense.round import Aggregate as Aggregate
    from datadefense.round import Round as Round
    from datadefense.server import Server as Server
    from datadefense.spill import Spill as Spill
    from datadefense.storage import load_state as load_state
    from datadefense.storage import save_state as save_state

__version__ = "0.1.0"

_HOMES = {
    "DEFENSES": "datadefense.defenses",
    "Admission": "datadefense.gate",
    "Aggregate": "datadefense.round",
    "Combined": "datadefense.defenses.base",
    "Defense": "datadefense.defenses.base",
    "DefenseSet": "datadefense.defense_set",
    "Examples": "datadefense.examples",
    "Gate": "datadefense.gate",
    "Layout": "datadefense.params",
    "Promise": "datadefense.defenses.base",
    "Rejection": "datadefense.gate",
    "Round": "datadefense.round",
    "Rule": "datadefense.defenses.base",
    "Server": "datadefense.server",
    "Spill": "datadefense.spill",
    "Submission": "datadefense.gate",
    "available": "datadefense.defenses",
    "create": "datadefense.defenses",
    "defend": "datadefense.defended_round",
    "load_state": "datadefense.storage",
    "penultimate": "datadefense.models.features",
    "predictor": "datadefense.params",
    "save_state": "datadefense.storage",
}
__all__ = [
    "DEFENSES",
    "Admission",
    "Aggregate",
    "Combined",
    "Defense",
    "DefenseSet",
    "Examples",
    "Gate",
    "Layout",
    "Promise",
    "Rejection",
    "Round",
    "Rule",
    "Server",
    "Spill",
    "Submission",
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
