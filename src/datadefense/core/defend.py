"""One defended round: what the gate admitted, through a defense, to a model that is finite."""

import logging
from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor

from datadefense.core.defense import Defense
from datadefense.core.detector import plain_detector
from datadefense.core.foreign import plain_json
from datadefense.core.gate import Admission
from datadefense.core.layout import Layout
from datadefense.core.outcomes import ClientOutcome, outcomes_of
from datadefense.core.result import check_result
from datadefense.core.round import Aggregate, StateT
from datadefense.core.server import Server

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Defended(Aggregate[StateT]):
    """An aggregate that can be released, with what became of each client.

    Args:
        outcomes: one for each update that was sent, in the order they came: those that the gate
            turned away are in their places.
    """

    outcomes: tuple[ClientOutcome, ...] = ()


def defend(
    defense: Defense[StateT],
    state: StateT,
    admission: Admission,
    global_params: Float[Tensor, " dim"],
    server: Server,
) -> Defended[StateT]:
    """Aggregate the admitted updates; the model stays where that is the only safe answer.

    ``global_params`` is the server's model; the round is measured against what was sent of it
    (`model_to_send`).

    Two such cases: nobody was admitted, or the result is not finite in the model's own dtypes
    (updates near the end of the float range can still overflow an average). Then the old model and
    the old state are returned and the report's ``"held"`` says why. The whole report is plain JSON,
    whatever the defense put there: what is not finite is None.

    A result of another dtype or shape than the round's is an error of the defense, said here:
    it would stop the next round with a word about something else.
    """
    if admission.round is None:
        return _unchanged_model("no update was admitted", admission, global_params, state)
    result = defense.aggregate(state, admission.round, server)
    check_result(defense, result, admission.round)
    params = admission.layout.to_valid_params(result.params, global_params)
    if params is None:
        return _unchanged_model("the aggregate is not finite", admission, global_params, state)
    detector = None if result.detector is None else plain_detector(result.detector)
    report = plain_json(result.report)
    return _with_outcomes(
        replace(result, params=params, report=report, detector=detector), admission
    )


def model_to_send(
    defense: Defense[StateT],
    state: StateT,
    params: Float[Tensor, " dim"],
    server: Server,
    *,
    index: int,
    layout: Layout,
) -> Float[Tensor, " dim"]:
    """Return what clients are sent in round ``index``: the global model, or a defense's own of it.

    The global model where the defense's is not finite in the model's own dtypes. A shape or dtype
    other than the global model's is an error of the defense.
    """
    sent = defense.sent(state, params, server, index)
    if sent is params:
        return params
    if (sent.shape, sent.dtype) != (params.shape, params.dtype):
        raise ValueError(
            f"{defense.name} sends {sent.dtype} of shape {tuple(sent.shape)}, "
            f"the global model is {params.dtype} of shape {tuple(params.shape)}"
        )
    valid = layout.to_valid_params(sent, params)
    if valid is None:
        logger.warning("round %d: %s: the model to send is not finite", index, defense.name)
        return params
    return valid


def _unchanged_model(
    why: str, admission: Admission, params: Float[Tensor, " dim"], state: StateT
) -> Defended[StateT]:
    clients = 0 if admission.round is None else admission.round.num_clients
    weights = params.new_zeros(clients)
    return _with_outcomes(
        Aggregate(params.clone(), state, weights, report={"held": why}), admission
    )


def _with_outcomes(result: Aggregate[StateT], admission: Admission) -> Defended[StateT]:
    """Return a result with what became of each client."""
    return Defended(
        params=result.params,
        state=result.state,
        weights=result.weights,
        evidence=result.evidence,
        report=result.report,
        reasons=result.reasons,
        detector=result.detector,
        theta=result.theta,
        outcomes=outcomes_of(result, admission.round, admission.rejected, admission.passed),
    )
