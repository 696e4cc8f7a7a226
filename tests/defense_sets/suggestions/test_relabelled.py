"""Clean examples labelled as what they may be turned into: counted by a slow twin."""

import pytest
import torch

from datadefense.core.examples import Examples
from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError
from datadefense.defense_sets.suggestions.candidates import Candidates
from datadefense.defense_sets.suggestions.relabelled import most_relabelled, relabelled


def numbered(labels):
    """Examples whose input is their row."""
    return Examples(torch.arange(len(labels)), torch.tensor(labels))


def by_hand(clean, sources, targets, count, draw):
    """The same, one example at a time."""
    order = torch.randperm(len(clean), generator=draw).tolist()
    made, used = [], set()
    for place, target in enumerate(targets):
        wanted = len([one for one in range(count) if one % len(targets) == place])
        for row in order:
            was = int(clean.labels[row])
            if wanted and row not in used and was != target and (not sources or was in sources):
                used.add(row)
                made.append((row, target, f"{was} as {target}"))
                wanted -= 1
    return made


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("sources", "targets", "count"),
    [((7,), (1,), 20), (None, (1,), 50), ((3, 7), (1, 2), 21), (None, tuple(range(10)), 47)],
)
def test_as_by_hand(sources, targets, count, seed):
    labels = torch.randint(10, (400,), generator=generator(seed, "labels")).tolist()
    clean = numbered(labels)
    made = relabelled(clean, sources, targets, count, generator(seed, "draw"))
    expected = by_hand(clean, sources, targets, count, generator(seed, "draw"))
    rows, now, origins = zip(*expected, strict=True)
    assert made.examples.inputs.tolist() == list(rows)
    assert made.examples.labels.tolist() == list(now)
    assert made.origins == origins
    assert len(made) == len(set(rows)) == count


@pytest.mark.parametrize("seed", range(20))
def test_the_most_there_can_be(seed):
    """As many as it says are made, whatever the classes, and not one more."""
    draw = generator(seed, "classes")
    clean = numbered(torch.randint(4, (30,), generator=draw).tolist())
    sources = torch.randperm(4, generator=draw)[:3].tolist()
    targets = torch.randperm(5, generator=draw)[:2].tolist()
    most = most_relabelled(clean, sources, targets)
    counts = [
        len([one for one in clean.labels.tolist() if one in sources and one != target])
        for target in targets
    ]
    assert most == min(counts)
    assert len(relabelled(clean, sources, targets, most, draw)) == most
    with pytest.raises(SettingsError, match=f"candidates must be <= {most}, "):
        relabelled(clean, sources, targets, most + 1, draw)


def test_another_draw_takes_others():
    clean = numbered([7] * 100)
    one, two = (
        relabelled(clean, (7,), (1,), 10, generator(seed, "draw")).examples for seed in (0, 1)
    )
    assert one.inputs.tolist() != two.inputs.tolist()


@pytest.mark.parametrize(
    ("labels", "sources", "targets", "count", "message"),
    [
        ([7] * 5, (7,), (1,), 6, "<= 5, the clean examples of class 7 that are not 1, got 6"),
        ([7] * 5, (3,), (1,), 1, "<= 0, the clean examples of class 3 that are not 1, got 1"),
        ([7] * 5, (3, 4), (1,), 1, "the clean examples of classes 3, 4 that are not 1, got 1"),
        ([1] * 5, None, (1,), 1, "<= 0, the clean examples of all classes that are not 1, got 1"),
        ([7] * 5, (7,), (1, 7), 1, "<= 0, the clean examples of class 7 that are not 7, got 1"),
        ([7] * 5, (7,), (1,), 0, "candidates must be >= 1, got 0"),
        ([7] * 5, (7,), (), 1, "needs at least one class to turn examples into"),
    ],
)
def test_what_there_is_not(labels, sources, targets, count, message):
    with pytest.raises(SettingsError, match=message):
        relabelled(numbered(labels), sources, targets, count, generator(0, "draw"))


def test_every_candidate_has_an_origin():
    with pytest.raises(SettingsError, match="one origin a candidate: got 1 origins, 2 candidates"):
        Candidates(numbered([1, 1]), ("7 as 1",))
