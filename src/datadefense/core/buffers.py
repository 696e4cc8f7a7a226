"""Buffers: what becomes of the tensors of a model that no gradient moves.

BatchNorm's running mean and variance are buffers, and so are its counter of batches, masks and
constants. A client moves them by looking at its data, not by descent. `BufferPolicy` says what the
server makes of them:

- ``"aggregate"`` (default): floating buffers are *carried*: they are part of the vector, so that
  defenses see and weigh them like parameters (what most federated frameworks do), but no gradient
  moves them. Integer ones (``num_batches_tracked``) stay as the server has them, and those that
  clients send are ignored;
- ``"keep"``: all buffers stay as the server has them. Right for a model that was trained before;
  one whose running statistics are freshly initialised does not learn this way, which is a warning;
- ``"refuse"``: a model with buffers is an error that names them.
"""

from collections.abc import Collection, Mapping
from typing import Literal

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from datadefense.core.errors import InputError

BufferPolicy = Literal["refuse", "keep", "aggregate"]
MEAN, VARIANCE = "running_mean", "running_var"
"""Last parts of the names of running statistics."""
BATCH_NORM_BUFFERS = (MEAN, VARIANCE, "num_batches_tracked")
"""Last parts of names by which buffers are known in a plain state dict."""


class UnhandledBuffersError(InputError):
    """A model holds buffers and the policy is to refuse them."""


class FreshStatisticsWarning(UserWarning):
    """Running statistics that nothing has moved yet will never be moved."""


def last_part(name: str) -> str:
    """Return the name of a tensor in its own layer: ``"layer1.0.bn1.running_var"`` is its last."""
    return name.rsplit(".", 1)[-1]


def refusal(names: Collection[str]) -> str:
    """Return the words by which a model with these buffers is refused."""
    return (
        f"the model has {len(names)} buffers ({shorten(names)}), which no gradient moves. Choose "
        "buffers='aggregate' (floating ones join the vector, integer ones stay) or "
        "buffers='keep' (the server's stay), or use a norm without running statistics, such as "
        "GroupNorm"
    )


def fresh_statistics(tensors: Mapping[str, Tensor], kept: Collection[str]) -> str | None:
    """Warn of kept running statistics that are all as PyTorch initialises them; None if not so."""
    means = [tensors[name] for name in kept if last_part(name) == MEAN]
    variances = [tensors[name] for name in kept if last_part(name) == VARIANCE]
    if not means or not variances:
        return None
    if any(bool((mean != 0).any()) for mean in means):
        return None
    if any(bool((variance != 1).any()) for variance in variances):
        return None
    return (
        f"the running statistics of {len(means)} layers are freshly initialised (mean 0, variance "
        "1), and buffers='keep' leaves them so: a model that clients train from scratch will not "
        "learn. Choose buffers='aggregate', or begin with a trained model"
    )


def smallest_batch(module: nn.Module) -> int:
    """Return the fewest examples that a training step needs: two where a batch has a variance."""
    return 2 if any(isinstance(part, _NormBase) for part in module.modules()) else 1


def shorten(names: Collection[str], limit: int = 5) -> str:
    """Return the first of the names, and how many more there are."""
    shown = ", ".join(repr(name[:60]) for name in list(names)[:limit])
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")
