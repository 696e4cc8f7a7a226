"""Laws that every pre-aggregator obeys, by itself and before a defense: ``check_preaggregator``."""

from collections.abc import Callable
from typing import Any

import torch

from datadefense.core.preaggregator import PreAggregator, Prepared
from datadefense.core.round import Round
from datadefense.core.server import Server
from datadefense.defenses.krum import MultiKrum
from datadefense.defenses.mean import FedAvg
from datadefense.defenses.pipeline import Pipeline
from datadefense.testing.broken import naming, require, require_close, require_plugin
from datadefense.testing.laws import check_defense
from datadefense.testing.settings_laws import require_name, require_plain_settings
from datadefense.testing.toy import toy_round, toy_server

PreAggregatorLaw = Callable[[PreAggregator[Any], Server], None]
CLIENTS = (11, 12, 20)
"""Sizes of rounds that a pre-aggregator prepares, if they are not too small for it."""


def settings_are_plain(part: PreAggregator[Any], _server: Server) -> None:
    """It has a name and is a frozen dataclass whose settings can be stored and read back."""
    require_name(part)
    require_plain_settings(part)


def rows_are_those_announced(part: PreAggregator[Any], server: Server) -> None:
    """As many rows go out as `num_rows` says, of the model's size; ids tell whose they are."""
    for round in large_enough(part):
        made = prepare(part, round, server).round
        shape = tuple(made.updates.shape)
        wanted = (part.num_rows(round.num_clients), len(round.global_params))
        require(shape == wanted, f"{round.num_clients} clients: rows are {shape}, not {wanted}")
        same = made.client_ids == round.client_ids
        require(
            same or not part.one_row_a_client,
            f"one_row_a_client is True, and clients {round.client_ids} became {made.client_ids}",
        )
        unmoved = torch.equal(made.global_params, round.global_params)
        require(unmoved and made.index == round.index, "the global model or the index changed")


def origin_explains_the_rows(part: PreAggregator[Any], server: Server) -> None:
    """The rows are ``origin @ updates``, if it gives an origin: weights of clients rest on it."""
    for round in large_enough(part):
        made = prepare(part, round, server)
        if made.origin is None:
            continue
        matrix = made.origin.diag() if made.origin.ndim == 1 else made.origin
        shape, wanted = tuple(matrix.shape), (len(made.round.updates), round.num_clients)
        require(shape == wanted, f"the origin has shape {shape}, not {wanted}")
        rows = matrix @ round.updates.double()
        require_close(made.round.updates, rows, "the rows and origin @ updates")


def promises_are_kept(part: PreAggregator[Any], server: Server) -> None:
    """Before a mean and before Multi-Krum, all laws on defenses hold, and all that it `keeps`."""
    for rule in (FedAvg(), MultiKrum()):
        check_defense(Pipeline((part,), rule), server)


PREAGGREGATOR_LAWS: tuple[PreAggregatorLaw, ...] = (
    settings_are_plain,
    rows_are_those_announced,
    origin_explains_the_rows,
    promises_are_kept,
)


def check_preaggregator(part: PreAggregator[Any], server: Server | None = None) -> None:
    """Hold a pre-aggregator to every law, and what stands behind it to the promises it `keeps`.

    Raises BrokenLawError (an AssertionError) with the law's name. ``server`` is as in
    `check_defense`.

    >>> from datadefense.preaggregators import Clip
    >>> check_preaggregator(Clip())
    """
    require_plugin(part, PreAggregator, check_preaggregator)
    for law in PREAGGREGATOR_LAWS:
        with naming(part, law):
            law(part, server or toy_server())


def large_enough(part: PreAggregator[Any]) -> list[Round]:
    """Return rounds that are not too small for a pre-aggregator; there must be one."""
    rounds = [toy_round(clients) for clients in CLIENTS if part.shortage(clients) is None]
    require(rounds != [], f"shortage refuses rounds of {CLIENTS} clients")
    return rounds


def prepare(part: PreAggregator[Any], round: Round, server: Server) -> Prepared[Any]:
    """Prepare a round from a fresh state."""
    return part.prepare(part.init(server, round.global_params), round, server)
