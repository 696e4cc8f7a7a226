"""The defense set: examples on the server, some of them poisoned, a few known to be clean."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from datadefense.core.errors import InputError
from datadefense.core.examples import Examples

Inputs = Tensor | tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class DefenseSet:
    """The paper's D_d with its marks D_clean, and what a fixed encoder makes of its inputs.

    Nothing here is changed in place: ``add`` and ``mark`` return another set, which a
    server may hold from the next round on. A defense knows examples by their ids, so its state
    carries over.

    Args:
        examples: inputs with the labels they came with, right or wrong.
        known_clean: which of them somebody has looked at and found clean.
        features: the encoder's view of each input (`datadefense.core.features`), kept in float32.
        ids: one text each, all different; by default `content_ids`.
        provenance: where each came from, for people; no defense reads it.
    """

    examples: Examples
    known_clean: Bool[Tensor, " examples"]
    features: Float[Tensor, "examples width"]
    ids: tuple[str, ...] = ()
    provenance: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.ids:
            object.__setattr__(self, "ids", content_ids(self.examples.inputs, self.examples.labels))
        if not self.provenance:
            object.__setattr__(self, "provenance", ("",) * len(self.examples))
        for what, column in (
            ("known_clean", self.known_clean),
            ("features", self.features),
            ("ids", self.ids),
            ("provenance", self.provenance),
        ):
            if len(column) != len(self.examples):
                raise InputError(f"{what} must have {len(self)} rows, got {len(column)}")
        if self.known_clean.dtype != torch.bool:
            raise InputError(f"known_clean must be true or false, got {self.known_clean.dtype}")
        if self.features.ndim != 2:
            raise InputError(
                f"features must be [examples, width], got shape {tuple(self.features.shape)}"
            )
        object.__setattr__(self, "features", self.features.to(torch.float32))
        if len(set(self.ids)) != len(self.ids):
            twice = next(name for name in self.ids if self.ids.count(name) > 1)
            raise InputError(f"ids must differ, {twice!r} is there twice")
        if not bool(self.features.isfinite().all()):
            raise InputError("features must be finite")

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
        places = {name: place for place, name in enumerate(self.ids)}
        known = self.known_clean.clone()
        for name in ids:
            if name not in places:
                raise InputError(f"no example is called {name!r}")
            known[places[name]] = clean
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


def content_ids(inputs: Inputs, labels: Int64[Tensor, " examples"]) -> tuple[str, ...]:
    """Return "x" and a digest of input and label; equal examples get a number behind it.

    The same example has the same id everywhere. A spreadsheet takes 12e45 for a number and writes
    another one back; it leaves x12e45 alone.
    """
    keys = (given.encode() if isinstance(given, str) else _content(given) for given in inputs)
    seen: dict[str, int] = {}
    ids: list[str] = []
    for key, label in zip(keys, labels.tolist(), strict=True):
        digest = "x" + blake2b(b"%d:" % label + key, digest_size=5).hexdigest()
        seen[digest] = seen.get(digest, 0) + 1
        ids.append(digest if seen[digest] == 1 else f"{digest}-{seen[digest]}")
    return tuple(ids)


def _content(row: Tensor) -> bytes:
    return row.detach().cpu().contiguous().numpy().tobytes()
