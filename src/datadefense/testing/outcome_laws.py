"""Laws on outcomes: one for each update that was sent, with its weight, and why if it is out."""

import json
import math
from dataclasses import replace
from typing import Any

from datadefense.core.defend import Defended, defend
from datadefense.core.defense import Defense
from datadefense.core.gate import Admission, Rejection
from datadefense.core.outcome_json import detector_json, outcome_json, read_outcome
from datadefense.core.outcomes import ClientOutcome, Verdict
from datadefense.core.predictor import Layout
from datadefense.core.reasons import in_words
from datadefense.core.round import Round
from datadefense.core.server import Server
from datadefense.testing.broken import require
from datadefense.testing.hostile import hostile_rounds
from datadefense.testing.toy import toy_round

UNBLAMED = (Verdict.COUNTED, Verdict.VOTED)


def everybody_has_an_outcome(defense: Defense[Any], server: Server) -> None:
    """Each update has one outcome: in ordinary, small and hostile rounds, and with an outlier."""
    ordinary = toy_round()
    outlier = ordinary.updates.clone()
    outlier[3] *= -100
    rounds = [
        ("an ordinary round", ordinary),
        ("two clients", toy_round(2)),
        ("an outlier", replace(ordinary, updates=outlier)),
        *hostile_rounds(),
    ]
    for what, round in rounds:
        layout = Layout.of_state_dict({"params": round.global_params})
        rejected = (Rejection("stranger", "3 of 603 values are not finite"),)
        state = defense.init(server, round.global_params)
        admission = Admission(round, rejected, layout)
        result = defend(defense, state, admission, round.global_params, server)
        _check(what, round, result)


def _check(what: str, round: Round, result: Defended[Any]) -> None:
    clients = [outcome.client for outcome in result.outcomes]
    expected = [*round.client_ids, "stranger"]
    require(clients == expected, f"{what}: outcomes are of {clients}, sent have {expected}")
    *admitted, last = result.outcomes
    require(last.verdict is Verdict.REJECTED, f"{what}: the rejected client was {last.verdict}")
    weights = [None] * len(admitted) if result.weights is None else result.weights.tolist()
    for outcome, weight in zip(admitted, weights, strict=True):
        require(
            outcome.weight == weight,
            f"{what}: client {outcome.client} has weight {outcome.weight}, not {weight}",
        )
    for outcome in result.outcomes:
        _check_outcome(f"{what}: client {outcome.client}", outcome)
    if result.detector is not None:
        unknown = set(result.detector.marked) - set(result.detector.suspicion)
        require(not unknown, f"{what}: marked examples have no suspicion: {sorted(unknown)}")
        json.dumps(detector_json(result.detector), allow_nan=False)
    require(
        all(math.isfinite(value) for value in result.theta.values()),
        f"{what}: theta is not finite",
    )


def _check_outcome(whose: str, outcome: ClientOutcome) -> None:
    blamed = outcome.verdict not in UNBLAMED
    said = "" if outcome.reason is None else in_words(outcome.reason)
    require(blamed == bool(said), f"{whose} was {outcome.verdict} with the reason {said!r}")
    require("?" not in said, f"{whose} has a reason without its number: {said}")
    numbers = [*outcome.evidence.values(), outcome.weight or 0.0]
    require(all(map(math.isfinite, numbers)), f"{whose} has a number that is not finite")
    again = read_outcome(json.loads(json.dumps(outcome_json(outcome), allow_nan=False)))
    require(again == outcome, f"{whose} is another after JSON: {again}")
