"""Distributed backdoor: each attacker stamps only a part of the trigger."""

from dataclasses import dataclass
from typing import ClassVar

from datadefense.attacks.base import AttackContext, AttackerData, Threat
from datadefense.attacks.model_replacement import ModelReplacement
from datadefense.core.examples import Examples
from datadefense.core.settings import SettingsError


@dataclass(frozen=True, slots=True)
class Dba(ModelReplacement):
    """Each attacker stamps a part of the trigger; scaled.

    Train on poison with one part of the trigger; success is measured with the whole of it.

    Attackers of a round take different parts, and one that comes alone takes the next part each
    time.

    Reference: Xie et al., *DBA: Distributed Backdoor Attacks against Federated Learning*, ICLR
    2020.
    """

    name: ClassVar[str] = "dba"
    threat: ClassVar[Threat] = Threat(
        "the round's number of examples", trains_longer=True, scales=True
    )

    def examples(self, data: AttackerData, context: AttackContext) -> Examples:
        """Return clean examples and those with this attacker's part."""
        if not data.parts:
            raise SettingsError("dba needs a trigger that comes in parts: a trigger task")
        part = (context.attacker[0] + context.index - 1) % len(data.parts)
        return data.clean.join(data.parts[part])
