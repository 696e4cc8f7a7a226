"""Distributed backdoor: each attacker stamps only a part of the trigger."""

from dataclasses import dataclass

from datadefense.attacks.base import AttackContext, AttackerData, Twist
from datadefense.core.examples import Examples
from datadefense.core.settings import SettingsError


@dataclass(frozen=True, slots=True)
class Distributed(Twist):
    """Train on poison with one part of the trigger; success is measured with the whole of it.

    Attackers of a round take different parts, and one that comes alone takes the next part each
    time.

    Reference: Xie et al., *DBA: Distributed Backdoor Attacks against Federated Learning*, ICLR
    2020.
    """

    def examples(self, attacker_data: AttackerData, context: AttackContext) -> Examples:
        """Return clean examples and those with this attacker's part."""
        if not attacker_data.parts:
            raise SettingsError("dba needs a trigger that comes in parts: a trigger setup")
        part = (context.attacker[0] + context.index - 1) % len(attacker_data.parts)
        return attacker_data.clean.join(attacker_data.parts[part])
