"""The k entries of a vector with the greatest absolute values."""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor


def top_mask(vector: Float[Tensor, " dim"], count: int) -> Bool[Tensor, " dim"]:
    """Mark the ``count`` entries of greatest magnitude; of equals, those with the lower index.

    numpy's introselect finds the threshold; it is faster here than ``torch.topk``.
    """
    dim = len(vector)
    if not 0 <= count <= dim:
        raise ValueError(f"top_mask needs 0 <= count <= dim, got count={count}, dim={dim}")
    if count in (0, dim):
        return torch.full((dim,), count == dim, device=vector.device)
    sizes: np.ndarray = vector.detach().abs().cpu().numpy()
    sizes.partition(dim - count)
    threshold = float(sizes[dim - count])
    del sizes
    mask = (vector > threshold).logical_or_(vector < -threshold)
    missing = count - int(mask.count_nonzero())
    if missing:
        ties = (vector == threshold).logical_or_(vector == -threshold)
        mask[ties.nonzero().flatten()[:missing]] = True
    return mask
