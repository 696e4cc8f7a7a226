"""What a model gives on D_d, kept under its fingerprint for the round in which it is released."""

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


class Answers(NamedTuple):
    """A model's l_c and margin on every example; what is not finite, or huge: `WORST`."""

    losses: PerExample
    margins: PerExample


def answers(z: Float[Tensor, "examples classes"], examples: Examples) -> Answers:
    """Return the answers that logits give."""
    z, y = z.detach(), examples.labels
    return Answers(*(_finite(values) for values in (l_c(z, y), margin(z, y))))


def answers_of(
    server: Server, params: Float[Tensor, " dim"], examples: Examples, kept: Kept
) -> Answers:
    """Return a model's answers: the kept ones if it is known, else those of a forward pass.

    The model that a round starts from is nearly always the one that the round before made and
    looked at, so one forward pass in M + 2 is saved.
    """
    if not len(examples):
        return Answers(torch.zeros(0), torch.zeros(0))
    known = kept.get(fingerprint(params, examples)) if kept else None
    if known is not None:
        return Answers(*known)
    with torch.no_grad():
        return answers(server.logits(params, examples.inputs), examples)


def keep(params: Float[Tensor, " dim"], examples: Examples, given: Answers) -> Kept:
    """Return what to remember of the model that a round has made."""
    return {fingerprint(params, examples): torch.stack(given)}


def fingerprint(params: Float[Tensor, " dim"], examples: Examples) -> str:
    """Return a digest of the bits of a model and of the examples, in their order."""
    digest = blake2b(digest_size=16)
    for tensor in (params, examples.inputs, examples.labels):
        flat = tensor.detach().cpu().contiguous().view(-1)
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _finite(values: Tensor) -> Tensor:
    return values.nan_to_num(WORST, WORST, -WORST).clamp(-WORST, WORST)
