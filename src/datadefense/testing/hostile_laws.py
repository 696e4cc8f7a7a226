"""Laws on what attackers send, and on memory that a defense does not own."""

import json
from dataclasses import replace
from typing import Any

import torch

from datadefense.core.defense import Defense
from datadefense.core.round import Aggregate, Round
from datadefense.core.server import Server
from datadefense.testing.broken import BrokenLawError, require, require_equal, require_finite
from datadefense.testing.broken import tensors_of as tensors
from datadefense.testing.hostile import honest_round, hostile_rounds
from datadefense.testing.toy import toy_round
from datadefense.testing.work import work_of

MOST_WORK = 8
"""How many times the work of an honest round a hostile one of the same size may cost."""


def attackers_cannot_make_it_work(defense: Defense[Any], server: Server) -> None:
    """No round costs more than a few times the work of an honest one of its size.

    Work is counted in numbers that torch reads and writes, not in time.
    """

    def work(round: Round) -> int:
        state = defense.init(server, round.global_params)
        return work_of(lambda: defense.aggregate(state, round, server))

    work(honest_round())  # what is made once and kept, such as a sorting network
    usual = work(honest_round())
    for what, round in hostile_rounds():
        times = work(round) / usual
        require(
            times <= MOST_WORK,
            f"{what}: {times:.3g} > {MOST_WORK} times the work of an honest round",
        )


def what_it_says_is_finite(defense: Defense[Any], server: Server) -> None:
    """Weights and evidence have no NaN and no infinity, and the report is JSON, whatever came."""
    for what, round in hostile_rounds():
        state = defense.init(server, round.global_params)
        result = defense.aggregate(state, round, server)
        if result.weights is not None:
            require_finite(result.weights, f"{what}: a weight is not finite")
        for name, values in result.evidence.items():
            require_finite(values, f"{what}: evidence {name!r} is not finite")
        try:
            json.dumps(dict(result.report), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise BrokenLawError(f"{what}: the report is not JSON: {error}") from error


def nothing_rests_on_the_rounds_memory(defense: Defense[Any], server: Server) -> None:
    """What ``aggregate`` returned stays as it is when the round's memory is used again.

    A simulator writes the next round where the last one was: a defense that kept a view of it would
    go on from other numbers than it saw.
    """
    first, second = toy_round(seed=1), toy_round(seed=2)
    expected = _after(defense, server, first)
    lent = replace(
        first,
        global_params=first.global_params.clone(),
        updates=first.updates.clone(),
        num_examples=first.num_examples.clone(),
    )
    result = _after(defense, server, lent)
    lent.global_params.fill_(1e3)
    lent.updates.fill_(-1e3)
    lent.num_examples.fill_(12345)
    for what, wanted, found in (
        ("the model", [expected.params], [result.params]),
        ("the weights", tensors((expected.weights,)), tensors((result.weights,))),
        ("the evidence", tensors(dict(expected.evidence)), tensors(dict(result.evidence))),
        ("the state", tensors(expected.state), tensors(result.state)),
    ):
        for seen, left in zip(wanted, found, strict=True):
            require_equal(seen, left, f"{what} changed when the round's memory was used again")
    straight = defense.aggregate(expected.state, second, server)
    after = defense.aggregate(result.state, second, server)
    require(
        torch.equal(straight.params, after.params),
        "the next round went another way when the memory of the last was used again",
    )


def _after(defense: Defense[Any], server: Server, round: Round) -> Aggregate[Any]:
    state = defense.init(server, round.global_params)
    return defense.aggregate(state, round, server)
