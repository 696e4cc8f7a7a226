from .core.defend import defend as defend
from .core.defense import Combined as Combined
from .core.defense import Defense as Defense
from .core.defense import Promise as Promise
from .core.defense import Rule as Rule
from .core.defense_set import DefenseSet as DefenseSet
from .core.examples import Examples as Examples
from .core.features import penultimate as penultimate
from .core.gate import Admission as Admission
from .core.gate import Gate as Gate
from .core.gate import Rejection as Rejection
from .core.gate import Submission as Submission
from .core.predictor import Layout as Layout
from .core.predictor import predictor as predictor
from .core.round import Aggregate as Aggregate
from .core.round import Round as Round
from .core.server import Server as Server
from .core.storage import load_state as load_state
from .core.storage import save_state as save_state
from .defenses import DEFENSES as DEFENSES
from .defenses import available as available
from .defenses import create as create
from .kernels.spill import Spill as Spill

__version__: str
