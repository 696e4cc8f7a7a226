"""The session of a strategy: what it works with in a run, made of the first model that is sent."""

import copy
import dataclasses
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from flwr.app import ArrayRecord, Message
from torch import Tensor, nn

from datadefense.core.buffers import BufferPolicy
from datadefense.core.defense import Defense
from datadefense.core.defense_set import DefenseSet
from datadefense.core.examples import Examples
from datadefense.core.fingerprint import Fingerprint
from datadefense.core.gate import Gate, Sends
from datadefense.core.predictor import Layout, predictor
from datadefense.core.run_state import RunState
from datadefense.core.server import Server
from datadefense.core.settings import check_choice, check_int
from datadefense.flower.arrays import make_record, read_record
from datadefense.flower.folder import stored_or_new
from datadefense.flower.needs import check_strategy
from datadefense.flower.nodes import logger
from datadefense.kernels.spill import Spill


@dataclass(frozen=True, slots=True, eq=False)
class SessionSettings:
    """What a session is made with; the arguments of `DefendedStrategy` of the same names."""

    defense: Defense[Any]
    model: nn.Module | None
    defense_set: DefenseSet | None
    clean: Examples | None
    seed: int | None
    buffers: BufferPolicy
    sends: Sends
    max_examples: int
    folder: Path | None
    spill: Spill | None

    def __post_init__(self) -> None:
        check_strategy(self.defense, self.model, self.clean, self.defense_set)
        check_choice("sends", self.sends, get_args(Sends))
        check_int("max_examples", self.max_examples, 1)


@dataclass(slots=True, eq=False)
class Session:
    """What the strategy works with in a run.

    Args:
        gate: checks what nodes send.
        server: what the defense may use.
        buffers: tensors of the model that are not aggregated, as they were first sent.
        state: the model, the defense's state and the number of rounds so far.
        fingerprint: says which run a stored state is of.
        rounds_before: rounds of the run that an earlier process ran.
        sent_params: the model that the nodes of this round were sent.
        sent: messages to the nodes that train in this round.
        evaluated: messages to the nodes that evaluate in this round.
    """

    gate: Gate
    server: Server
    buffers: dict[str, Tensor]
    state: RunState
    fingerprint: Fingerprint
    rounds_before: int
    sent_params: Tensor
    sent: list[Message] = field(default_factory=list)
    evaluated: list[Message] = field(default_factory=list)

    def record(self, params: Tensor) -> ArrayRecord:
        """Return a model as nodes are sent it."""
        return make_record({**self.gate.layout.unflatten(params), **self.buffers})


def open_session(settings: SessionSettings, arrays: ArrayRecord, run: str) -> Session:
    """Read the first model, prepare the defense, and continue from a state that is in the folder.

    ``run`` is the name of the run: the state of another one is refused.
    """
    tensors = {name: tensor.clone() for name, tensor in read_record(arrays).items()}
    model = settings.model
    known = () if model is None else [name for name, _ in model.named_buffers()]
    layout = Layout.of_state_dict(tensors, settings.buffers, known)
    if line := layout.about_buffers():
        logger.info("%s", line)
    params = layout.flatten(tensors)
    buffers = {name: tensors[name] for name in layout.kept}
    predict = None if model is None else predictor(_with(model, buffers), layout)
    seed = secrets.randbits(63) if settings.seed is None else settings.seed
    server = Server(predict, settings.clean, seed, settings.defense_set)
    state = RunState(params, settings.defense.init(server, params), 0, seed)
    fingerprint = Fingerprint.of(settings.defense, layout, run)
    if settings.folder is not None:
        state = stored_or_new(settings.folder, state, fingerprint)
    if settings.seed is None:
        server = dataclasses.replace(server, seed=state.seed)
    gate = Gate(
        layout, max_examples=settings.max_examples, sends=settings.sends, spill=settings.spill
    )
    return Session(gate, server, buffers, state, fingerprint, state.round, state.params)


def _with(model: nn.Module, buffers: dict[str, Tensor]) -> nn.Module:
    """Return a copy of the model with the buffers that nodes are sent: its own may be others."""
    model = copy.deepcopy(model)
    model.load_state_dict(buffers, strict=False)
    return model
