"""Poison variants: the server's poison looks different from the attacker's."""

import torch
from jaxtyping import UInt8
from torch import Tensor

from datadefense.attacks.poison import AttackSet
from datadefense.attacks.trigger_patch import TriggerPatch, stamp, stamp_randomly
from datadefense.core.content import content_keys
from datadefense.core.examples import Examples
from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError

LOOKS = ("recoloured", "larger", "corner")
"""What `other_poison` can make of poison."""
LARGER = 14
"""Width and height of the other trigger where it is larger."""


def other_poison(
    view: str, held: Examples, seed: int, stamped: AttackSet, plain: AttackSet | None
) -> Examples:
    """Return the server's poison in another look.

    Args:
        view: ``recoloured``, ``larger`` or ``corner``; the last two need a trigger.
        held: the server's poison as it was dealt.
        seed: root of the randomness of places.
        stamped: the attack set that it is from.
        plain: the same, row by row, without the trigger; None where the backdoor has none.
    """
    if plain is None:
        if view != "recoloured":
            raise SettingsError(f"poison_view must be same or recoloured here, got {view!r}")
        return Examples(recolour(held.inputs), held.labels)
    images = without_trigger(held, stamped, plain)
    draw = generator(seed, "other poison")
    if view == "recoloured":
        painted = recolour(stamp_randomly(recolour(images, back=True), TriggerPatch(), draw))
    elif view == "larger":
        painted = stamp_randomly(images, TriggerPatch(LARGER), draw)
    else:
        corner = torch.zeros(len(images), 2, dtype=torch.int64)
        painted = stamp(images, corner, TriggerPatch())
    return Examples(painted, held.labels)


def without_trigger(held: Examples, stamped: AttackSet, plain: AttackSet) -> Tensor:
    """Return the images that examples of an attack set were before they were stamped."""
    rows = {key: row for row, key in enumerate(content_keys(stamped.train.inputs))}
    return plain.train.inputs[[rows[key] for key in content_keys(held.inputs)]]


def recolour(images: UInt8[Tensor, "images 3 height width"], *, back: bool = False) -> Tensor:
    """Let each colour take the next one's place: red as green, green as blue, blue as red.

    Stamped between the way back and the way there, only the patch has other colours.
    """
    if images.ndim != 4 or images.shape[1] != 3:
        raise SettingsError(f"recoloured needs colours, got images {tuple(images.shape[1:])}")
    return images.roll(-1 if back else 1, dims=1)
