"""D_d in all forms of DataDefense: split it, and compute every client's losses on it."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from datadefense.core.client_models import of_each_client
from datadefense.core.defense_set import DefenseSet
from datadefense.core.needs import Need, NeedsError, wanted
from datadefense.core.round import Round
from datadefense.core.server import Server
from datadefense.defenses.datadefense.importance import PerClient
from datadefense.defenses.datadefense.losses import PerExample, l_c

NEEDS = Need.MODEL | Need.DEFENSE_SET
"""What every form of DataDefense wants of the server."""
WORST = 1e6
"""Nats that replace a loss that is greater, or not finite."""
AT_ONCE = 125
"""Most examples per thread in one forward pass of a client's model.

With many more, a convolution's output exceeds 32 MB and its memory is requested from the system
each time, a third of the time of `mnist_net`. With few, PyTorch may multiply in another way and
give other bits; the parts are about equal, so that none is small."""


def defense_set_of(server: Server, name: str, least: int = 1) -> DefenseSet:
    """Return the server's defense set, or raise if it has fewer than ``least`` examples."""
    if server.predict is None or server.defense_set is None or len(server.defense_set) < least:
        raise NeedsError(wanted(name, NEEDS))
    return server.defense_set


def split(
    gamma: PerExample, beta: float, spared: Bool[Tensor, " examples"] | None = None
) -> Bool[Tensor, " examples"]:
    """Return which examples are D_dp: the round(beta n) with the highest gamma, at least one.

    Never all of them, so that of two examples or more one is left for D_dc, and none that is
    ``spared``. Of equal scores the example that comes first is taken.
    """
    wanted = max(1, min(round(beta * len(gamma)), len(gamma) - 1)) if beta > 0 else 0
    scores = gamma if spared is None else torch.where(spared, -torch.inf, gamma)
    order = scores.sort(descending=True, stable=True).indices
    marked = torch.zeros(len(gamma), dtype=torch.bool)
    marked[order[:wanted]] = True
    return marked if spared is None else marked & ~spared


def client_losses(
    server: Server, round: Round, owned: DefenseSet
) -> Float[Tensor, "clients examples"]:
    """Return l_c of every client's model on every example; not finite or huge becomes `WORST`."""
    inputs, labels = owned.examples.inputs, owned.examples.labels
    if not len(inputs):
        return torch.zeros(round.num_clients, 0)

    def losses(params: Float[Tensor, " dim"]) -> PerExample:
        with torch.no_grad():
            parts = [server.logits(params, part) for part in in_parts(inputs)]
        return l_c(torch.cat(parts), labels)

    return (
        torch.stack(of_each_client(server, round, losses))
        .nan_to_num(WORST, WORST, WORST)
        .clamp(max=WORST)
    )


def in_parts(inputs: Tensor) -> tuple[Tensor, ...]:
    """Return the inputs in parts of about the same size, for one forward pass each."""
    parts = math.ceil(len(inputs) / (AT_ONCE * torch.get_num_threads()))
    return inputs.tensor_split(parts)


def mean_loss(
    losses: Float[Tensor, "clients examples"], chosen: Bool[Tensor, " examples"]
) -> PerClient:
    """Return each client's mean loss over the chosen examples; 0 if there are none."""
    if not bool(chosen.any()):
        return torch.zeros(len(losses), dtype=torch.float64)
    return losses[:, chosen].to(torch.float64).mean(1)
