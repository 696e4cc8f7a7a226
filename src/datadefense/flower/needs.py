"""What a defense needs of a strategy, said before the first round."""

from collections.abc import Sized
from typing import Any

from datadefense.core.defense import Defense
from datadefense.core.needs import Need, call_with, offered
from datadefense.flower.nodes import logger

ARGUMENTS = {
    Need.MODEL: "model",
    Need.CLEAN_EXAMPLES: "clean",
    Need.DEFENSE_SET: "defense_set",
}
"""Under which name the strategy takes it."""


def check_strategy(
    defense: Defense[Any], model: object | None, clean: Sized | None, defense_set: Sized | None
) -> None:
    """Raise if the strategy lacks what the defense needs; warn of one that rests on node ids."""
    remedy = call_with("DefendedStrategy", ARGUMENTS, defense.needs)
    defense.check_needs(offered(model, clean, defense_set) | Need.CLIENT_IDENTITY, remedy)
    if Need.CLIENT_IDENTITY in defense.needs:
        logger.warning(
            "%s knows clients by their node ids: a node that connects again may have another one, "
            "and so may an attacker; authenticate nodes, see docs/flower.md",
            defense.name,
        )
