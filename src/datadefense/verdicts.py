"""Verdicts: what became of each client, in a word."""

from typing import Any

from torch import Tensor

from datadefense.round import Aggregate, Round


def verdicts(result: Aggregate[Any], round: Round) -> list[str]:
    """Return one verdict a client of the round.

    ``kept``; ``excluded`` (weight 0); ``clipped to 31 %`` of its norm; ``down-weighted`` (less
    than half the weight of the median client, in itself and for its examples); ``in the vote``
    where a rule takes each coordinate on its own and weighs nobody.
    """
    chosen = result.evidence.get("chosen")
    scales = result.evidence.get("scale")
    lows: list[Tensor] = []
    if result.weights is not None:
        for values in (result.weights, result.weights / round.shares()):
            lows.append(values < 0.5 * values.median())
    words: list[str] = []
    for client in range(round.num_clients):
        if result.weights is None:
            if chosen is None:
                words.append("in the vote")
            else:
                words.append("kept" if float(chosen[client]) > 0 else "excluded")
        elif float(result.weights[client]) == 0:
            words.append("excluded")
        elif scales is not None and float(scales[client]) < 1:
            percent = 100 * float(scales[client])
            words.append(f"clipped to {percent:.0f} %" if percent >= 1 else "clipped to < 1 %")
        elif all(bool(low[client]) for low in lows):
            words.append("down-weighted")
        else:
            words.append("kept")
    return words
