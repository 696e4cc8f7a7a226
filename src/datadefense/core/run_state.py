"""Where a run of defended rounds stands: the model, the defense's state, the round and the seed."""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class RunState:
    """All that is needed to go on after a round, but for what the server owns.

    Args:
        params: the global model.
        state: what the defense remembers.
        round: number of the last round; 0 before the first.
        seed: root of the defense's randomness, which may be a secret.
    """

    params: Float[Tensor, " dim"]
    state: Any
    round: int
    seed: int = 0
