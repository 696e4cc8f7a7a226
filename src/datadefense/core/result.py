"""What a defense returned, held against the round that it was given: types, dtypes and shapes."""

from typing import Any

from torch import Tensor

from datadefense.core.defense import Defense
from datadefense.core.errors import InputError
from datadefense.core.round import Aggregate, Round

OURS = __name__.partition(".")[0]


def check_result(defense: Defense[Any], result: object, round: Round) -> None:
    """Raise unless a result is an `Aggregate` with a model, weights and evidence like the round's.

    Which numbers there are is not looked at: clients have a say in these, and none in this.
    """
    who = f"defense {called(defense)}"
    if not isinstance(result, Aggregate):
        raise InputError(f"{who} must return an Aggregate, got a {type(result).__name__}")
    params, wanted = result.params, round.global_params
    if not isinstance(params, Tensor):
        raise InputError(f"{who} must return a tensor of params, got a {type(params).__name__}")
    if params.shape != wanted.shape:
        raise InputError(
            f"{who} returned params of shape {tuple(params.shape)}, the round's have "
            f"{tuple(wanted.shape)}"
        )
    if params.dtype != wanted.dtype:
        raise InputError(f"{who} returned {_short(params)}, the round is {_short(wanted)}")
    by_client = dict(result.evidence)
    if result.weights is not None:
        by_client["weights"] = result.weights
    for name, values in by_client.items():
        shape = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        if shape != (round.num_clients,):
            raise InputError(
                f"{who} must return {name} as a tensor of shape ({round.num_clients},), one value "
                f"a client, got {shape}"
            )


def called(defense: Defense[Any]) -> str:
    """Return what a defense is called: by its name, or where it is found if it is not ours."""
    cls = type(defense)
    if cls.__module__.partition(".")[0] == OURS:
        return defense.name
    return f"{cls.__module__}:{cls.__qualname__}"


def _short(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
