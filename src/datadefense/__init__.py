"""DataDefense: keep a federated model free of backdoors.

A round is a matrix of client updates; a defense turns it into a new global model. The names below
are the public surface; they are imported on first use, so that ``import datadefense`` is quick.
"""

import importlib
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datadefense.core.buffers import UnhandledBuffersError as UnhandledBuffersError
    from datadefense.core.defend import Defended as Defended
    from datadefense.core.defend import defend as defend
    from datadefense.core.defense import Combined as Combined
    from datadefense.core.defense import Defense as Defense
    from datadefense.core.defense import Promise as Promise
    from datadefense.core.defense import Rule as Rule
    from datadefense.core.defense import TooFewClientsError as TooFewClientsError
    from datadefense.core.defense_set import DefenseSet as DefenseSet
    from datadefense.core.detector import DetectorRecord as DetectorRecord
    from datadefense.core.errors import DataDefenseError as DataDefenseError
    from datadefense.core.errors import InputError as InputError
    from datadefense.core.examples import Examples as Examples
    from datadefense.core.features import penultimate as penultimate
    from datadefense.core.gate import Admission as Admission
    from datadefense.core.gate import Gate as Gate
    from datadefense.core.gate import Rejection as Rejection
    from datadefense.core.gate import Submission as Submission
    from datadefense.core.needs import Need as Need
    from datadefense.core.needs import NeedsError as NeedsError
    from datadefense.core.outcomes import ClientOutcome as ClientOutcome
    from datadefense.core.outcomes import Verdict as Verdict
    from datadefense.core.postaggregator import PostAggregator as PostAggregator
    from datadefense.core.postaggregator import Step as Step
    from datadefense.core.preaggregator import Mixed as Mixed
    from datadefense.core.preaggregator import Mixer as Mixer
    from datadefense.core.preaggregator import PreAggregator as PreAggregator
    from datadefense.core.predictor import Layout as Layout
    from datadefense.core.predictor import predictor as predictor
    from datadefense.core.reasons import Reason as Reason
    from datadefense.core.round import Aggregate as Aggregate
    from datadefense.core.round import Round as Round
    from datadefense.core.round_files import FileError as FileError
    from datadefense.core.run_state import RunState as RunState
    from datadefense.core.sent_kind import WrongKindError as WrongKindError
    from datadefense.core.server import Server as Server
    from datadefense.core.settings import SettingsError as SettingsError
    from datadefense.core.storage import StateError as StateError
    from datadefense.core.storage import load_state as load_state
    from datadefense.core.storage import save_state as save_state
    from datadefense.data.errors import DataError as DataError
    from datadefense.defenses import DEFENSES as DEFENSES
    from datadefense.defenses import Pipeline as Pipeline
    from datadefense.defenses import available as available
    from datadefense.defenses import create as create
    from datadefense.defenses import name_of as name_of
    from datadefense.defenses import settings_of as settings_of
    from datadefense.guard import Guard as Guard
    from datadefense.guard import GuardResult as GuardResult
    from datadefense.kernels.spill import Spill as Spill

__version__ = "0.1.0"

_HOMES = {
    "Admission": "datadefense.core.gate",
    "Aggregate": "datadefense.core.round",
    "ClientOutcome": "datadefense.core.outcomes",
    "Combined": "datadefense.core.defense",
    "DEFENSES": "datadefense.defenses",
    "DataDefenseError": "datadefense.core.errors",
    "DataError": "datadefense.data.errors",
    "Defended": "datadefense.core.defend",
    "Defense": "datadefense.core.defense",
    "DefenseSet": "datadefense.core.defense_set",
    "DetectorRecord": "datadefense.core.detector",
    "Examples": "datadefense.core.examples",
    "FileError": "datadefense.core.round_files",
    "Gate": "datadefense.core.gate",
    "Guard": "datadefense.guard",
    "GuardResult": "datadefense.guard",
    "InputError": "datadefense.core.errors",
    "Layout": "datadefense.core.predictor",
    "Mixed": "datadefense.core.preaggregator",
    "Mixer": "datadefense.core.preaggregator",
    "Need": "datadefense.core.needs",
    "NeedsError": "datadefense.core.needs",
    "Pipeline": "datadefense.defenses",
    "PostAggregator": "datadefense.core.postaggregator",
    "PreAggregator": "datadefense.core.preaggregator",
    "Promise": "datadefense.core.defense",
    "Reason": "datadefense.core.reasons",
    "Rejection": "datadefense.core.gate",
    "Round": "datadefense.core.round",
    "Rule": "datadefense.core.defense",
    "RunState": "datadefense.core.run_state",
    "Server": "datadefense.core.server",
    "SettingsError": "datadefense.core.settings",
    "Spill": "datadefense.kernels.spill",
    "StateError": "datadefense.core.storage",
    "Step": "datadefense.core.postaggregator",
    "Submission": "datadefense.core.gate",
    "TooFewClientsError": "datadefense.core.defense",
    "UnhandledBuffersError": "datadefense.core.buffers",
    "WrongKindError": "datadefense.core.sent_kind",
    "Verdict": "datadefense.core.outcomes",
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
    "ClientOutcome",
    "Combined",
    "DataDefenseError",
    "DataError",
    "Defended",
    "Defense",
    "DefenseSet",
    "DetectorRecord",
    "Examples",
    "FileError",
    "Gate",
    "Guard",
    "GuardResult",
    "InputError",
    "Layout",
    "Mixed",
    "Mixer",
    "Need",
    "NeedsError",
    "Pipeline",
    "PostAggregator",
    "PreAggregator",
    "Promise",
    "Reason",
    "Rejection",
    "Round",
    "Rule",
    "RunState",
    "Server",
    "SettingsError",
    "Spill",
    "StateError",
    "Step",
    "Submission",
    "TooFewClientsError",
    "UnhandledBuffersError",
    "Verdict",
    "WrongKindError",
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
