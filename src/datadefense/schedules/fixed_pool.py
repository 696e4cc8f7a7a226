"""Fixed pool: some of the federation's own clients are malicious."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from datadefense.core.rng import generator
from datadefense.core.settings import check_float, check_int, setting
from datadefense.schedules.base import Schedule


@dataclass(frozen=True, slots=True)
class FixedPool(Schedule):
    """A share of the clients is malicious and attacks whenever it is drawn."""

    share: float = setting(0.2, "share of all clients that is malicious")
    last: int | None = setting(None, "last round in which they attack; none: no end")

    name: ClassVar[str] = "fixed-pool"

    def __post_init__(self) -> None:
        check_float("share", self.share, above=0, maximum=1)
        if self.last is not None:
            check_int("last", self.last, 1)

    def malicious(self, index: int, clients: int, seed: int) -> frozenset[int]:
        """Return the malicious clients: drawn once from the seed, one at the least."""
        if self.last is not None and index > self.last:
            return frozenset()
        order = torch.randperm(clients, generator=generator(seed, "pool"))
        size = max(1, round(self.share * clients))
        return frozenset(int(client) for client in order[:size])

    def last_attack(self) -> int | None:
        """Return the last round in which an attack may come."""
        return self.last
