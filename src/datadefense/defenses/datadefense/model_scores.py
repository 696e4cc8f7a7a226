"""A model's losses and margins on D_d, kept under its fingerprint for the next round."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.core.examples import Examples
from datadefense.core.server import Server
from datadefense.defenses.datadefense.client_losses import WORST
from datadefense.defenses.datadefense.losses import PerExample, l_c, margin

Kept = Mapping[str, Float[Tensor, "2 examples"]]
"""Losses and margins by `fingerprint`."""


class ModelScores(NamedTuple):
    """A model's l_c and margin on every example; not finite or huge values become `WORST`."""

    losses: PerExample
    margins: PerExample


def scores_from_logits(z: Float[Tensor, "examples classes"], examples: Examples) -> ModelScores:
    """Return the losses and margins that logits give."""
    z, y = z.detach(), examples.labels
    return ModelScores(*(_finite(values) for values in (l_c(z, y), margin(z, y))))


def scores_of(
    server: Server, params: Float[Tensor, " dim"], examples: Examples, kept: Kept
) -> ModelScores:
    """Return a model's scores: the kept ones if it is known, else those of a forward pass.

    A round nearly always starts from the model that the round before made and measured, so this
    saves one forward pass in M + 2.
    """
    if not len(examples):
        return ModelScores(torch.zeros(0), torch.zeros(0))
    known = kept.get(fingerprint(params, examples)) if kept else None
    if known is not None:
        return ModelScores(*known)
    with torch.no_grad():
        return scores_from_logits(server.logits(params, examples.inputs), examples)


def keep(params: Float[Tensor, " dim"], examples: Examples, scores: ModelScores) -> Kept:
    """Return what to remember of the model that a round has made."""
    return {fingerprint(params, examples): torch.stack(scores)}


def fingerprint(params: Float[Tensor, " dim"], examples: Examples) -> str:
    """Return a digest of the bits of a model and of the examples, in their order."""
    digest = blake2b(digest_size=16)
    for tensor in (params, examples.inputs, examples.labels):
        flat = tensor.detach().cpu().contiguous().view(-1)
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _finite(values: Tensor) -> Tensor:
    return values.nan_to_num(WORST, WORST, -WORST).clamp(-WORST, WORST)
