"""A guard: a model, a defense and what it remembers, behind one method for a round.

It is the short way for a server that has a loop of its own::

    guard = Guard(model, "multi-krum", settings={"num_malicious": 2})
    result = guard.step(sent, num_examples)
    model.load_state_dict(result.state_dict)

Nothing is decided here: submissions pass the `Gate`, `defend` makes the new model. The guard holds
what those are given anew each round, and is the one object of the library that changes.
"""

import copy
import logging
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from datadefense.core.buffers import BufferPolicy
from datadefense.core.defend import defend
from datadefense.core.defense import Defense
from datadefense.core.defense_set import DefenseSet
from datadefense.core.errors import InputError
from datadefense.core.examples import Examples
from datadefense.core.fingerprint import Fingerprint
from datadefense.core.gate import Gate, Sends
from datadefense.core.needs import Need, call_with
from datadefense.core.outcomes import ClientOutcome
from datadefense.core.predictor import Layout, predictor
from datadefense.core.round import Aggregate, ClientId
from datadefense.core.run_state import RunState
from datadefense.core.sent_kind import check_kind
from datadefense.core.server import Server
from datadefense.core.settings import SettingsError
from datadefense.core.storage import load_state, save_state
from datadefense.core.submissions import Counts, submissions_of
from datadefense.defenses import create
from datadefense.kernels.spill import Spill

logger = logging.getLogger(__name__)
ARGUMENTS = {
    Need.MODEL: "model",
    Need.CLEAN_EXAMPLES: "clean",
    Need.DEFENSE_SET: "defense_set",
}
"""Under which name the guard takes what a defense needs."""


@dataclass(frozen=True, slots=True, eq=False)
class GuardResult:
    """What a step returns.

    Args:
        state_dict: the new global model, complete: ``load_state_dict`` takes it as it is.
        outcomes: who counted and why, in the order in which clients were given.
        report: facts about the round as plain JSON; ``"held"`` and ``"fallback"`` say why the model
            stayed, or why the rule could not be applied.
        aggregate: the defense's full answer, with the evidence behind it.
    """

    state_dict: dict[str, Any]
    outcomes: tuple[ClientOutcome, ...]
    report: Mapping[str, Any]
    aggregate: Aggregate[Any]


class Guard:
    """Defended rounds for a model; it keeps the global model and what the defense remembers.

    Args:
        model: the first global model. It is copied; what happens to it later changes nothing here.
        defense: a defense, or the name of one.
        settings: settings of a defense that is given by name.
        sends: what clients send: their whole ``models``, or ``updates`` (model less global model).
        check_sends: whether a first round that looks like the other kind is refused; see
            `datadefense.core.sent_kind`.
        defense_set: the server's examples, for DataDefense.
        clean: examples known to be clean, for FLTrust; by default those of the defense set.
        seed: root of the defense's randomness. None, the default, draws a secret one, which `save`
            keeps: who knows it can foresee noise and first weights.
        buffers: what happens to BatchNorm's statistics; see `datadefense.core.buffers`.
        known_clients: ids that may take part; None admits any id.
        max_examples: greatest number of examples that a client may claim.
        spill: where updates go that are too large for memory; None keeps all of them there.
        run: name of the run; a saved state of another one is refused.
    """

    def __init__(
        self,
        model: nn.Module,
        defense: Defense[Any] | str,
        *,
        settings: Mapping[str, object] | None = None,
        sends: Sends = "models",
        check_sends: bool = True,
        defense_set: DefenseSet | None = None,
        clean: Examples | None = None,
        seed: int | None = None,
        buffers: BufferPolicy = "aggregate",
        known_clients: Iterable[ClientId] | None = None,
        max_examples: int = 1_000_000,
        spill: Spill | None = None,
        run: str = "",
    ) -> None:
        if not isinstance(model, nn.Module):
            raise InputError(
                f"model must be an nn.Module, got a {type(model).__name__}: a state dict does not "
                "say what is a buffer, and cannot be tried out"
            )
        if settings and not isinstance(defense, str):
            raise SettingsError("settings go with a name: a Defense object has its own")
        self.defense = create(defense, settings) if isinstance(defense, str) else defense
        layout = Layout.of_module(model, buffers)
        known = None if known_clients is None else frozenset(known_clients)
        self.gate = Gate(layout, known, max_examples, sends, spill)
        tensors = model.state_dict()
        params = layout.flatten({slot.name: tensors[slot.name] for slot in layout.slots})
        if not bool(params.isfinite().all()):
            raise InputError("the model holds values that are not finite")
        changing = layout.unflatten(params)
        self._names = tuple(tensors)
        self._fixed = {
            name: copy.deepcopy(value) for name, value in tensors.items() if name not in changing
        }
        if clean is None and defense_set is not None:
            clean = defense_set.examples.take(defense_set.known_clean.nonzero().flatten())
        self._own_seed = seed
        seed = secrets.randbits(63) if seed is None else seed
        predict = predictor(copy.deepcopy(model).cpu(), layout)
        self._server = Server(predict, clean, seed, defense_set)
        offers = self._server.offers() | Need.CLIENT_IDENTITY
        self.defense.check_needs(offers, call_with("Guard", ARGUMENTS, self.defense.needs))
        self._fingerprint = Fingerprint.of(self.defense, layout, run)
        self._run = RunState(params, self.defense.init(self._server, params), 0, seed)
        self._check_sends = check_sends

    @property
    def state(self) -> RunState:
        """Where the guard stands: global model, the defense's state, last round, seed."""
        return self._run

    @property
    def state_dict(self) -> dict[str, Any]:
        """The global model, complete: what clients are sent, and ``load_state_dict`` takes."""
        tensors = self.gate.layout.unflatten(self._run.params)
        return {
            name: tensors[name].clone() if name in tensors else copy.deepcopy(self._fixed[name])
            for name in self._names
        }

    def step(
        self,
        updates: Mapping[ClientId, Any] | Iterable[Any],
        num_examples: Counts = None,
    ) -> GuardResult:
        """Defend one round: check what clients sent, aggregate, keep the new model and state.

        Whatever a client sent, garbage too, is a matter of that client alone: it is rejected with a
        reason in ``outcomes``, and the round goes on.

        Args:
            updates: what each client sent, by its id, or a list (ids are then 0, 1, ...): a state
                dict, named arrays or a flat vector [dim], whole models or updates as ``sends``
                says.
            num_examples: each client's count, by its id or in the order of ``updates`` (a list or a
                vector of integers); one whole number for all of them; None gives all the same
                weight. Counts of ids that sent nothing are passed over.
        """
        submissions = submissions_of(updates, num_examples, self._names)
        run = self._run
        admission = self.gate.admit(run.round + 1, run.params, submissions)
        if self._check_sends:
            check_kind(admission, self.gate.sends)
        result = defend(self.defense, run.state, admission, run.params, self._server)
        self._check_sends = self._check_sends and admission.round is None
        self._run = RunState(result.params, result.state, run.round + 1, run.seed)
        for name in ("held", "fallback"):
            if name in result.report:
                logger.warning("round %d: %s", run.round + 1, result.report[name])
        return GuardResult(self.state_dict, result.outcomes, dict(result.report), result)

    def save(self, path: Path | str) -> None:
        """Write where the guard stands to one file, atomically and for its owner's eyes alone."""
        save_state(path, self._run, self._fingerprint)

    def restore(self, path: Path | str) -> None:
        """Go on from a file of `save`; that of another defense, model or run is a `StateError`.

        The seed is that of the file, unless one was given to this guard.
        """
        run = load_state(path, self._run, self._fingerprint)
        if self._own_seed is not None:
            run = replace(run, seed=self._own_seed)
        self._run = run
        self._check_sends = self._check_sends and run.round == 0
        self._server = replace(self._server, seed=run.seed)
