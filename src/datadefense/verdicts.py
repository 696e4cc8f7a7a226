"""Verdicts: what became of each client, in a word."""

from typing import Any

from datadefense.round import Aggregate, Round


def verdicts(result: Aggregate[Any], round: Round) -> list[str]:
    """Return one verdict a client of the round.

    ``kept``; ``excluded`` (weight 0); ``clipped to 31 %`` of its norm; ``down-weighted`` (less
    than half of what its examples give it); ``in the vote`` where a rule takes each coordinate on
    its own and weighs nobody.
    """
    chosen = result.evidence.get("chosen")
    scales = result.evidence.get("scale")
    shares = round.shares()
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
            words.append(f"clipped to {100 * float(scales[client]):.2g} %")
        elif float(result.weights[client]) < 0.5 * float(shares[client]):
            words.append("down-weighted")
        else:
            words.append("kept")
    return words
