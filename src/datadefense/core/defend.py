"""One defended round: what the gate admitted, through a defense, to a model that is finite."""

import logging
from collections.abc import Mapping
from typing import Any

from jaxtyping import Float
from torch import Tensor

from datadefense.core.defense import Defense
from datadefense.core.foreign import plain_json
from datadefense.core.gate import Admission
from datadefense.core.layout import Layout
from datadefense.core.round import Aggregate, StateT
from datadefense.core.server import Server

logger = logging.getLogger(__name__)


def defend(
    defense: Defense[StateT],
    state: StateT,
    admission: Admission,
    global_params: Float[Tensor, " dim"],
    server: Server,
) -> Aggregate[StateT]:
    """Aggregate the admitted updates; the model stays where that is the only safe answer.

    ``global_params`` is the server's model; the round is measured against what was sent of it
    (`model_to_send`).

    Two such cases: nobody was admitted, or the result is not finite in the model's own dtypes
    (updates near the end of the float range can still overflow an average). Then the old model and
    the old state are returned and the report's ``"held"`` says why. ``report["rejected"]`` lists
    whom the gate turned away. The whole report is plain JSON, whatever the defense put there: what
    is not finite is None.
    """
    facts: dict[str, Any] = {
        "clients": admission.round.num_clients if admission.round else 0,
        "rejected": [
            {"client": rejection.client_id, "reason": rejection.reason}
            for rejection in admission.rejected
        ],
    }
    if admission.round is None:
        return _held("no update was admitted", global_params, state, facts)
    result = defense.aggregate(state, admission.round, server)
    params = admission.layout.to_valid_params(result.params, global_params)
    if params is None:
        return _held("the aggregate is not finite", global_params, state, facts)
    report = {**facts, **plain_json(result.report)}
    return Aggregate(params, result.state, result.weights, result.evidence, report)


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


def _held(
    why: str, params: Float[Tensor, " dim"], state: StateT, facts: Mapping[str, Any]
) -> Aggregate[StateT]:
    weights = params.new_zeros(int(facts["clients"]))
    return Aggregate(params.clone(), state, weights, report={**facts, "held": why})
