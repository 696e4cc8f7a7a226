"""DataDefense: keep a federated model free of backdoors.

A round is a matrix of client updates; a defense turns it into a new global model. The names below
are the public surface; they are imported on first use, so that ``import datadefense`` is quick.
"""

import importlib
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    from datadefense.core.needs import Need as Need
    from datadefense.core.needs import NeedsError as NeedsError
    from datadefense.core.postaggregator import PostAggregator as PostAggregator
    from datadefense.core.postaggregator import Step as Step
    from datadefense.core.preaggregator import Mixed as Mixed
    from datadefense.core.preaggregator import Mixer as Mixer
    from datadefense.core.preaggregator import PreAggregator as PreAggregator
    from datadefense.core.predictor import Layout as Layout
    from datadefense.core.predictor import predictor as predictor
    from datadefense.core.round import Aggregate as Aggregate
    from datadefense.core.round import Round as Round
    from datadefense.core.server import Server as Server
    from datadefense.core.storage import load_state as load_state
    from datadefense.core.storage import save_state as save_state
    from datadefense.defenses import DEFENSES as DEFENSES
    from datadefense.defenses import Pipeline as Pipeline
    from datadefense.defenses import available as available
    from datadefense.defenses import create as create
    from datadefense.defenses import name_of as name_of
    from datadefense.defenses import settings_of as settings_of
    from datadefense.kernels.spill import Spill as Spill

__version__ = "0.1.0"

_HOMES = {
    "DEFENSES": "datadefense.defenses",
    "Admission": "datadefense.core.gate",
    "Aggregate": "datadefense.core.round",
    "Combined": "datadefense.core.defense",
    "Defense": "datadefense.core.defense",
    "DefenseSet": "datadefense.core.defense_set",
    "Examples": "datadefense.core.examples",
    "Gate": "datadefense.core.gate",
    "Layout": "datadefense.core.predictor",
    "Mixed": "datadefense.core.preaggregator",
    "Mixer": "datadefense.core.preaggregator",
    "Need": "datadefense.core.needs",
    "NeedsError": "datadefense.core.needs",
    "Pipeline": "datadefense.defenses",
    "PostAggregator": "datadefense.core.postaggregator",
    "PreAggregator": "datadefense.core.preaggregator",
    "Promise": "datadefense.core.defense",
    "Rejection": "datadefense.core.gate",
    "Round": "datadefense.core.round",
    "Rule": "datadefense.core.defense",
    "Server": "datadefense.core.server",
    "Spill": "datadefense.kernels.spill",
    "Step": "datadefense.core.postaggregator",
    "Submission": "datadefense.core.gate",
    "available": "datadefense.defenses",
    "create": "datadefense.defenses",
    "defend": "datadefense.core.defend",
    "load_state": "datadefense.core.storage",
    "name_of": "datadefense.defenses",
    "penultimate": "datadefense.core.features",
    "predictor": "datadefense.core.predictor",
    "save_state": "datadefense.core.storage",
    "settings_of": "datadefense.defenses",
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
    "Mixed",
    "Mixer",
    "Need",
    "NeedsError",
    "Pipeline",
    "PostAggregator",
    "PreAggregator",
    "Promise",
    "Rejection",
    "Round",
    "Rule",
    "Server",
    "Spill",
    "Step",
    "Submission",
    "__version__",
    "available",
    "create",
    "defend",
    "load_state",
    "name_of",
    "penultimate",
    "predictor",
    "save_state",
    "settings_of",
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
