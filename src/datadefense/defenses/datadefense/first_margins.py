"""The first margin of each example: what the model that first saw it made of its label."""

from collections.abc import Callable, Mapping

from datadefense.core.defense_set import DefenseSet
from datadefense.defenses.datadefense.losses import PerExample


def names_of(owned: DefenseSet) -> list[str]:
    """Return the name of each example: label and id. With another label an example is new."""
    labels = owned.examples.labels.tolist()
    return [f"{label} {example_id}" for label, example_id in zip(labels, owned.ids, strict=True)]


def first_margins(
    known: Mapping[str, float],
    owned: DefenseSet,
    margins: Callable[[], PerExample],
    most_absent: int,
) -> dict[str, float]:
    """Return the first margin of each example so far; new examples get today's ``margins()``.

    Margins of examples that have left the set are kept, so that an example that comes back is not
    judged by a model that has learned it meanwhile. The oldest are dropped beyond ``most_absent``.
    """
    names = names_of(owned)
    if all(name in known for name in names):
        return dict(known)
    today = dict(zip(names, margins().tolist(), strict=True))
    new = {name: margin for name, margin in today.items() if name not in known}
    absent = [name for name in known if name not in today]
    dropped = set(absent[: max(0, len(absent) - most_absent)])
    return {name: margin for name, margin in known.items() if name not in dropped} | new
