"""Verdicts: what became of each client, in a word."""

from typing import Any

import torch
from torch import Tensor

from datadefense.core.round import Aggregate, Round


def excluded(result: Aggregate[Any], round: Round) -> list[bool]:
    """Say of each client whether its update is not in the new model at all."""
    if result.weights is not None:
        return (result.weights == 0).tolist()
    chosen = result.evidence.get("chosen")
    return [False] * round.num_clients if chosen is None else (chosen <= 0).tolist()


def _scales(result: Aggregate[Any]) -> Tensor | None:
    """Return by how much each client's update was shortened, by all parts that shorten."""
    found = [
        values for name, values in result.evidence.items() if name.rpartition(".")[2] == "scale"
    ]
    return torch.stack(found).prod(0) if found else None


def verdicts(result: Aggregate[Any], round: Round) -> list[str]:
    """Return one verdict a client of the round.

    ``kept``; ``excluded`` (weight 0); ``clipped to 31 %`` of its norm; ``down-weighted`` (less
    than half the weight of the median client, in itself and for its examples); ``in the vote``
    where a rule takes each coordinate on its own and weighs nobody.
    """
    chosen = result.evidence.get("chosen")
    scales = _scales(result)
    lows: list[Tensor] = []
    if result.weights is not None:
        for values in (result.weights, result.weights / round.shares()):
            lows.append(values < 0.5 * values.median())
    words: list[str] = []
    for client, out in enumerate(excluded(result, round)):
        if out:
            words.append("excluded")
        elif result.weights is None:
            words.append("in the vote" if chosen is None else "kept")
        elif scales is not None and float(scales[client]) < 1:
            percent = 100 * float(scales[client])
            words.append(f"clipped to {percent:.0f} %" if percent >= 1 else "clipped to < 1 %")
        elif all(bool(low[client]) for low in lows):
            words.append("down-weighted")
        else:
            words.append("kept")
    return words
