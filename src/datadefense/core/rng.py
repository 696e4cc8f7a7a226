"""Named random generators derived from one seed.

A generator is a pure function of its name: it holds no place in a sequence, so a run that is
resumed, re-ordered or spread over workers draws the same numbers.
"""

import hashlib
import json

import torch


def derive_seed(seed: int, *name: str | int) -> int:
    """Return the 63-bit seed that ``name`` has under ``seed``.

    >>> derive_seed(0, "client", 3) == derive_seed(0, "client", 3)
    True
    >>> derive_seed(0, "client", 3) == derive_seed(0, "client", 4)
    False
    """
    text = json.dumps([seed, *name])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *name: str | int) -> torch.Generator:
    """Return a fresh CPU generator for ``name``, for example ``generator(0, "noise", round)``."""
    return torch.Generator().manual_seed(derive_seed(seed, *name))
