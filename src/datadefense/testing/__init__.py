"""Laws that every defense obeys, for our tests and for yours: ``check_defense(MyDefense())``."""

from datadefense.testing.broken import BrokenLawError
from datadefense.testing.laws import LAWS, Law, check_defense
from datadefense.testing.toy import TOY_DIM, toy_round, toy_server

__all__ = [
    "LAWS",
    "TOY_DIM",
    "BrokenLawError",
    "Law",
    "check_defense",
    "toy_round",
    "toy_server",
]
