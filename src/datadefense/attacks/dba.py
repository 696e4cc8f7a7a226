"""Distributed backdoor: each attacker stamps only a part of the trigger."""

from dataclasses import dataclass

from datadefense.attacks.base import Loot, Situation, Twist
from datadefense.examples import Examples
from datadefense.settings import SettingsError


@dataclass(frozen=True, slots=True)
class Distributed(Twist):
    """Train on poison with one part of the trigger; success is measured with the whole of it.

    Attackers of a round take different parts, and one that comes alone takes the next part each
    time.

    Reference: Xie et al., *DBA: Distributed Backdoor Attacks against Federated Learning*, ICLR
    2020.
    """

    def examples(self, loot: Loot, situation: Situation) -> Examples:
        """Return clean examples and those with this attacker's part."""
        if not loot.parts:
            raise SettingsError("dba needs a trigger that comes in parts: a trigger setup")
        part = (situation.attacker[0] + situation.index - 1) % len(loot.parts)
        return loot.clean.join(loot.parts[part])
