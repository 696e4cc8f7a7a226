"""Shards: which examples each client holds, as one index and its cuts."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int64
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Shards:
    """Client k holds the examples ``index[cuts[k] : cuts[k + 1]]``."""

    index: Int64[Tensor, " examples"]
    cuts: Int64[Tensor, " clients_plus_one"]

    @classmethod
    def of(cls, parts: Sequence[Tensor]) -> "Shards":
        """Pack one index tensor a client: two tensors in all, however many clients there are."""
        sizes = torch.tensor([0, *(len(part) for part in parts)])
        return cls(torch.cat(list(parts)), sizes.cumsum(0))

    def __len__(self) -> int:
        return len(self.cuts) - 1

    def __getitem__(self, client: int) -> Tensor:
        if not 0 <= client < len(self):
            raise IndexError(f"client must be in 0..{len(self) - 1}, got {client}")
        return self.index[int(self.cuts[client]) : int(self.cuts[client + 1])]

    def size(self, client: int) -> int:
        """Return how many examples a client holds."""
        return len(self[client])
