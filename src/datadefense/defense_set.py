"""The defense set: examples on the server, some of them poisoned, a few known to be clean."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from datadefense.examples import Examples


@dataclass(frozen=True, slots=True, eq=False)
class DefenseSet:
    """The paper's D_d with its marks D_clean, and what a fixed encoder makes of its inputs.

    Nothing here is changed in place: ``add`` and ``mark`` return another set, which a
    server may hold from the next round on. A defense knows examples by their ids, so its state
    carries over.

    Args:
        examples: inputs with the labels they came with, right or wrong.
        known_clean: which of them somebody has looked at and found clean.
        features: the encoder's view of each input (`datadefense.models.features`), kept in float32.
        ids: one text each, all different; by default the digest of input and label.
        provenance: where each came from, for people; no defense reads it.
    """

    examples: Examples
    known_clean: Bool[Tensor, " examples"]
    features: Float[Tensor, "examples width"]
    ids: tuple[str, ...] = ()
    provenance: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.ids:
            object.__setattr__(self, "ids", _digests(self.examples))
        if not self.provenance:
            object.__setattr__(self, "provenance", ("",) * len(self.examples))
        for what, column in (
            ("known_clean", self.known_clean),
            ("features", self.features),
            ("ids", self.ids),
            ("provenance", self.provenance),
        ):
            if len(column) != len(self.examples):
                raise ValueError(f"{what} must have {len(self)} rows, got {len(column)}")
        if self.known_clean.dtype != torch.bool:
            raise ValueError(f"known_clean must be true or false, got {self.known_clean.dtype}")
        if self.features.ndim != 2:
            raise ValueError(
                f"features must be [examples, width], got shape {tuple(self.features.shape)}"
            )
        object.__setattr__(self, "features", self.features.to(torch.float32))
        if len(set(self.ids)) != len(self.ids):
            twice = next(one for one in self.ids if self.ids.count(one) > 1)
            raise ValueError(f"ids must differ, {twice!r} is there twice")
        if not bool(self.features.isfinite().all()):
            raise ValueError("features must be finite")

    def __len__(self) -> int:
        return len(self.examples)

    def add(self, other: "DefenseSet") -> "DefenseSet":
        """Return the set with another one's examples behind its own."""
        return DefenseSet(
            self.examples.join(other.examples),
            torch.cat([self.known_clean, other.known_clean]),
            torch.cat([self.features, other.features]),
            self.ids + other.ids,
            self.provenance + other.provenance,
        )

    def mark(self, ids: Iterable[str], clean: bool = True) -> "DefenseSet":
        """Return the set with these examples known to be clean, or no longer."""
        places = {one: place for place, one in enumerate(self.ids)}
        known = self.known_clean.clone()
        for one in ids:
            if one not in places:
                raise ValueError(f"no example is called {one!r}")
            known[places[one]] = clean
        return replace(self, known_clean=known)

    def take(self, index: Tensor) -> "DefenseSet":
        """Return the examples at ``index``, in that order."""
        return DefenseSet(
            self.examples.take(index),
            self.known_clean[index],
            self.features[index],
            tuple(self.ids[place] for place in index.tolist()),
            tuple(self.provenance[place] for place in index.tolist()),
        )


def _digests(examples: Examples) -> tuple[str, ...]:
    """Return a short digest of each input and label; equal examples get a number behind it."""
    seen: dict[str, int] = {}
    ids: list[str] = []
    for row, label in zip(examples.inputs, examples.labels.tolist(), strict=True):
        content = row.detach().cpu().contiguous().numpy().tobytes() + str(label).encode()
        digest = hashlib.sha256(content).hexdigest()[:12]
        seen[digest] = seen.get(digest, 0) + 1
        ids.append(digest if seen[digest] == 1 else f"{digest}-{seen[digest]}")
    return tuple(ids)
