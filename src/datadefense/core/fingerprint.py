"""A fingerprint: says which run a state file is of, so that another run's state is refused.

Shapes do not tell runs apart: the state of ``median`` fits every model of the same size. So a state
that a run continues from has the defense, its settings, the model's tensors, and the name
of the run where there is one. Parameters are no part of it: an app that draws its first model anew
each time it is started is still the same app.
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from datadefense.core.defense import Defense
from datadefense.core.foreign import plain_json, sanitize, shown
from datadefense.core.json_file import from_json
from datadefense.core.layout import Layout


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Whose state it is.

    Args:
        defense: the defense's name.
        settings: the defense's settings, as plain JSON.
        tensors: dtype and shape of each tensor of the model's vector, by name.
        run: name of the run; empty where it has none.
    """

    defense: str
    settings: Mapping[str, Any]
    tensors: Mapping[str, str]
    run: str = ""

    @classmethod
    def of(cls, defense: Defense[Any], layout: Layout, run: str = "") -> "Fingerprint":
        """Return the fingerprint of a run with this defense and model."""
        settings: dict[str, Any] = (
            dataclasses.asdict(defense) if dataclasses.is_dataclass(defense) else {}
        )
        tensors = {
            slot.name: f"{str(slot.dtype).removeprefix('torch.')} {list(slot.shape)}"
            for slot in layout.slots
        }
        name = getattr(defense, "name", type(defense).__name__)
        return cls(str(name), plain_json(settings), tensors, run)

    def to_text(self) -> str:
        """Return it as one line of JSON."""
        return json.dumps(dataclasses.asdict(self), allow_nan=False)

    def difference(self, text: str) -> str | None:
        """Say in what the stored fingerprint ``text`` differs from this one; None if in nothing."""
        stored = from_json(text.encode())
        if not isinstance(stored, dict):
            return f"its fingerprint is {shown(stored)}"
        for what, mine in (("defense", self.defense), ("run", self.run)):
            if (was := stored.get(what)) != mine:
                return f"its {what} is {shown(was)}, this one's {mine!r}"
        return _differs("setting", stored.get("settings"), self.settings) or _differs(
            "tensor", stored.get("tensors"), self.tensors
        )


def _differs(what: str, stored: Any, mine: Mapping[str, Any]) -> str | None:
    """Name the first entry that is not the same in both, in the order of this run's."""
    if not isinstance(stored, dict):
        return f"it has no {what}s"
    for name in [*mine, *stored]:
        if name not in stored or name not in mine:
            where = "only in this run" if name in mine else "only there"
            return f"{what} {sanitize(name, 60)!r} is {where}"
        if stored[name] != mine[name]:
            was, now = (sanitize(str(side[name]), 60) for side in (stored, mine))
            return f"{what} {sanitize(name, 60)!r} is {was} there, {now} here"
    return None
