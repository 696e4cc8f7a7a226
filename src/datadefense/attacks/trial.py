"""A trial: the defense called by an attacker, on the true round or on one of its own making."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from datadefense.attacks.collusion import CallableRule, Params, View
from datadefense.core.gate import out_of_range
from datadefense.core.round import Aggregate, Round
from datadefense.core.server import Server
from datadefense.core.settings import SettingsError
from datadefense.kernels.memory import empty_matrix


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A round to try candidates in: the rule, what it knows, and which rows are the attackers'."""

    rule: CallableRule
    state: Any
    server: Server
    round: Round
    attacks: Bool[Tensor, " clients"]

    def answer(self, candidate: Params) -> Aggregate[Any] | None:
        """Return what the rule makes of it if all attackers send the candidate.

        The rule gets a matrix of its own and the state that it answers with is not kept, so nothing
        of this reaches the true round. None where the gate would not pass the candidate, the rule
        raises, or its model is not finite: an attacker cannot count on that.
        """
        if out_of_range(candidate) is not None:
            return None
        clients, dim = self.round.updates.shape
        updates = empty_matrix(clients, dim, self.round.updates.dtype).copy_(self.round.updates)
        updates[self.attacks] = candidate
        try:
            result = self.rule.aggregate(
                self.state, replace(self.round, updates=updates), self.server
            )
        except Exception:
            return None
        return result if bool(result.params.isfinite().all()) else None


def true_trial(view: View) -> Trial:
    """Return the round as it will be."""
    if view.rule is None or view.server is None:
        raise SettingsError("an attacker who tries the true round must see rule and server")
    return Trial(view.rule, view.state, view.server, view.round, view.attacks)


def guessed_trial(view: View) -> Trial | None:
    """Return a round of the stand-ins and, behind them, the attackers, at a server made of a guess.

    The stand-ins claim as many examples as the others do on average: attackers know how many a
    round has in all. None if the rule cannot begin at such a server.
    """
    if view.rule is None:
        raise SettingsError("an attacker who calls the defense must see the rule")
    server = view.guess()
    try:
        state = view.rule.init(server, view.first)
    except Exception:
        return None
    stand_ins, trained = view.stand_ins, view.round.updates[view.attacks]
    own, others = (view.round.num_examples[mask] for mask in (view.attacks, ~view.attacks))
    usual = (others if len(others) else own).to(torch.float64).mean().round()
    counts = torch.cat([usual.to(own.dtype).expand(len(stand_ins)), own])
    round = Round(
        view.round.index,
        view.round.global_params,
        torch.cat([stand_ins, trained]),
        counts,
        tuple(range(len(counts))),
        view.round.layout,
    )
    attacks = torch.arange(len(counts)) >= len(stand_ins)
    return Trial(view.rule, state, server, round, attacks)
