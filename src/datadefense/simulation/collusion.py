"""Attackers of a round look at all that was trained, and agree on what they send instead."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from datadefense.attacks.base import Attack, Sees, counted
from datadefense.attacks.collusion import Params, View
from datadefense.core.defense import Defense
from datadefense.core.defense_set import DefenseSet
from datadefense.core.features import penultimate
from datadefense.core.gate import out_of_range
from datadefense.core.predictor import predictor
from datadefense.core.rng import derive_seed
from datadefense.core.round import Round, StateT
from datadefense.core.server import Predict, Server
from datadefense.core.settings import SettingsError
from datadefense.schedules.base import Participant
from datadefense.simulation.federation import Federation


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """What the training of a round gave: a row for each participant, and the stand-ins'."""

    index: int
    people: Sequence[Participant]
    claims: Sequence[Any]
    updates: Float[Tensor, "participants dim"]
    stand_ins: Float[Tensor, "stand_ins dim"]


def collude(
    federation: Federation,
    trained: Trained,
    params: Params,
    *,
    defense: Defense[StateT],
    state: StateT,
    server: Server,
) -> dict[str, float]:
    """Write what the attackers agree on into their rows; return the figures behind it.

    ``params`` is the global model. The defense may be called on trial: it changes neither its state
    nor what it is given. Where each attacker sends its own, nothing happens.
    """
    attack, attacker_data = federation.attack, federation.attacker_data
    rows = [row for row in range(len(trained.people)) if _passes(trained, row)]
    attacks = torch.tensor([trained.people[row].is_malicious for row in rows], dtype=torch.bool)
    if attack is None or attacker_data is None or not bool(attacks.any()):
        return {}
    if type(attack).agree is Attack.agree:  # each sends its own: no copies are made for a look
        return {}
    held = (
        attacker_data.mixed()
        if attacker_data.other is None
        else attacker_data.mixed().join(attacker_data.other)
    )

    @cache
    def predict() -> Predict:
        return predictor(federation.module, federation.layout)

    def own_loss(params: Params) -> float:
        with torch.no_grad():
            return float(cross_entropy(predict()(params, held.inputs), held.labels))

    everybody = len(rows) == len(trained.people)
    sees = attack.sees()
    updates = trained.updates if everybody else trained.updates[torch.tensor(rows)]
    if Sees.HONEST_UPDATES not in sees:
        updates = updates.masked_fill(~attacks[:, None], torch.nan)
    plot = attack.agree(
        View(
            round=Round(
                trained.index,
                params,
                updates,
                torch.tensor([counted(trained.claims[row]) for row in rows]),
                tuple(trained.people[row].client_id for row in rows),
                federation.layout,
            ),
            attacks=attacks,
            stand_ins=trained.stand_ins,
            first=federation.start,
            rule=defense if Sees.RULE in sees else None,
            state=state if Sees.SERVER in sees else None,
            server=server if Sees.SERVER in sees else None,
            guess=lambda: guessed_server(federation, predict()),
            own_loss=own_loss,
        )
    )
    if plot is None:
        return {}
    trained.updates[torch.tensor(rows)[attacks]] = plot.updates
    return dict(plot.facts)


def _passes(trained: Trained, row: int) -> bool:
    """Say whether the gate will let a participant pass; an attacker can still mend its update."""
    if not counted(trained.claims[row]):
        return False
    return trained.people[row].is_malicious or out_of_range(trained.updates[row]) is None


def guessed_server(federation: Federation, predict: Predict) -> Server:
    """Return a server that has the attackers' guess for its data, and randomness of its own.

    The first half of the guessed clean examples is known to be clean, as if somebody had looked at
    it; the encoder is the model before the first round, as it is on the true server.
    """
    if federation.attacker_data is None or federation.attacker_data.guess is None:
        raise SettingsError("an attacker who knows the rule needs a guess of the defense set")
    clean, poison = federation.attacker_data.guess
    examples = clean.join(poison)
    known = torch.arange(len(examples)) < (len(clean) + 1) // 2
    module = copy.deepcopy(federation.module)
    module.load_state_dict(federation.layout.unflatten(federation.start), strict=False)
    defense_set = DefenseSet(examples, known, penultimate(module, examples.inputs))
    seed = derive_seed(federation.seed, "guess")
    return Server(predict, examples.take(known.nonzero().flatten()), seed, defense_set)
