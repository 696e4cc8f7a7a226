from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from datadefense import Server
from datadefense.core.defense import Combined, Rule
from datadefense.defenses import Krum, Median, TrimmedMean
from datadefense.testing import toy_round


@dataclass(frozen=True, slots=True)
class Picky(Rule):
    """A rule that needs five clients and does not say how many attackers it bears."""

    name: ClassVar[str] = "picky"

    def shortage(self, num_clients):
        return None if num_clients >= 5 else f"picky needs n >= 5, got n={num_clients}"

    def combine(self, round):
        return Combined(weights=round.shares())


def test_one_attacker_is_assumed_where_nothing_is_said():
    """The laws hold such a rule to one attacker; its fallback took none for granted."""
    assert Picky().assumed_malicious() == Median().assumed_malicious() == 1
    assert Krum(num_malicious=3).assumed_malicious() == 3
    assert TrimmedMean(num_malicious=0).assumed_malicious() == 0


@pytest.mark.parametrize(("clients", "said"), [(2, "kept the model"), (3, "took the median")])
def test_the_fallback_bears_that_attacker(clients, said):
    round = toy_round(clients)
    round.updates[0] = 1e30
    result = Picky().aggregate(None, round, Server())
    assert said in result.report["fallback"]
    assert (result.params - round.global_params).norm() < 1
    assert torch.equal(result.params, round.global_params) == (clients == 2)
