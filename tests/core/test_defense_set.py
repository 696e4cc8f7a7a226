from dataclasses import FrozenInstanceError

import pytest
import torch

from datadefense import Examples
from datadefense.core.defense_set import DefenseSet
from datadefense.core.rng import generator


def owned(count=4, seed=0, **columns):
    inputs = torch.randn(count, 3, generator=generator(seed, "set"))
    labels = torch.arange(count) % 2
    given = {"known_clean": torch.arange(count) < 2, "features": 2 * inputs} | columns
    return DefenseSet(Examples(inputs, labels), **given)


def test_it_fills_in_ids_and_provenance():
    mine = owned()
    assert len(mine) == 4
    assert len(set(mine.ids)) == 4
    assert mine.provenance == ("",) * 4
    assert owned(ids=("a", "b", "c", "d")).ids == ("a", "b", "c", "d")


def test_default_ids_are_those_of_the_content():
    """Same on another day and in another order; another label or input is another id."""
    mine = owned()
    assert mine.ids == owned().ids
    order = torch.tensor([2, 0, 3, 1])
    again = DefenseSet(mine.examples.take(order), mine.known_clean[order], mine.features[order])
    assert again.ids == tuple(mine.ids[place] for place in order.tolist())
    other = DefenseSet(
        Examples(mine.examples.inputs, 1 - mine.examples.labels), mine.known_clean, mine.features
    )
    assert not set(other.ids) & set(mine.ids)
    assert owned().ids == owned(features=torch.zeros(4, 1)).ids


def test_known_ids_never_change():
    """They are in people's files: these are fixed for good."""
    examples = Examples(torch.tensor([[1, 2], [3, 4]], dtype=torch.uint8), torch.tensor([0, 7]))
    mine = DefenseSet(examples, torch.zeros(2, dtype=torch.bool), torch.zeros(2, 1))
    assert mine.ids == ("x7392abe6d7", "x847d9e53a0")


def test_equal_examples_have_different_ids():
    same = Examples(torch.ones(3, 2), torch.zeros(3).long())
    mine = DefenseSet(same, torch.zeros(3, dtype=torch.bool), torch.zeros(3, 1))
    first = mine.ids[0]
    assert mine.ids == (first, f"{first}-2", f"{first}-3")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"known_clean": torch.zeros(3, dtype=torch.bool)}, "known_clean must have 4 rows, got 3"),
        ({"features": torch.zeros(5, 2)}, "features must have 4 rows, got 5"),
        ({"ids": ("a", "b")}, "ids must have 4 rows, got 2"),
        ({"provenance": ("here",)}, "provenance must have 4 rows, got 1"),
        ({"ids": ("a", "b", "a", "c")}, "ids must differ, 'a' is there twice"),
        ({"features": torch.full((4, 1), torch.nan)}, "features must be finite"),
        ({"features": torch.full((4, 1), torch.inf)}, "features must be finite"),
        ({"features": torch.full((4, 1), 1e300, dtype=torch.float64)}, "features must be finite"),
        ({"features": torch.zeros(4)}, r"features must be \[examples, width\], got shape \(4,\)"),
        ({"known_clean": torch.ones(4).long()}, "known_clean must be true or false, got torch.int"),
    ],
)
def test_columns_that_do_not_fit(columns, message):
    with pytest.raises(ValueError, match=message):
        owned(**columns)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.uint8])
def test_features_of_any_dtype_become_float32(dtype):
    features = torch.tensor([[1.0, 2.0]] * 4).to(dtype)
    assert owned(features=features).features.dtype == torch.float32
    assert owned(features=features).features.tolist() == [[1, 2]] * 4


def test_float32_features_are_not_copied():
    features = torch.zeros(4, 2)
    assert owned(features=features).features is features


def test_added_examples_come_behind():
    mine = owned(provenance=("ours",) * 4)
    more = owned(2, seed=1, provenance=("theirs",) * 2)
    both = mine.add(more)
    assert both.ids == mine.ids + more.ids
    assert both.provenance == ("ours",) * 4 + ("theirs",) * 2
    assert both.known_clean.tolist() == [True, True, False, False, True, True]
    assert torch.equal(both.features, torch.cat([mine.features, more.features]))
    assert torch.equal(both.examples.inputs[4:], more.examples.inputs)
    assert both.examples.labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert len(mine) == 4


def test_an_example_that_is_there_cannot_be_added():
    mine = owned()
    with pytest.raises(ValueError, match=f"ids must differ, '{mine.ids[1]}' is there twice"):
        mine.add(mine.take(torch.tensor([1])))


def test_marks_come_and_go():
    mine = owned()
    marked = mine.mark([mine.ids[3]])
    assert marked.known_clean.tolist() == [True, True, False, True]
    assert marked.mark(mine.ids[:2], clean=False).known_clean.tolist() == [
        False,
        False,
        False,
        True,
    ]
    assert mine.known_clean.tolist() == [True, True, False, False]
    assert marked.ids == mine.ids
    assert mine.mark([]).known_clean.tolist() == mine.known_clean.tolist()


def test_an_unknown_id_cannot_be_marked():
    with pytest.raises(ValueError, match="no example is called 'nobody'"):
        owned().mark(["nobody"])


def test_taken_examples_keep_their_columns():
    mine = owned(provenance=("a", "b", "c", "d"))
    part = mine.take(torch.tensor([3, 1]))
    assert part.ids == (mine.ids[3], mine.ids[1])
    assert part.provenance == ("d", "b")
    assert part.known_clean.tolist() == [False, True]
    assert torch.equal(part.features, mine.features[[3, 1]])
    assert torch.equal(part.examples.inputs, mine.examples.inputs[[3, 1]])
    assert len(mine.take(torch.arange(0))) == 0


def test_equal_examples_keep_their_ids_apart_when_taken():
    same = Examples(torch.ones(3, 2), torch.zeros(3).long())
    mine = DefenseSet(same, torch.zeros(3, dtype=torch.bool), torch.zeros(3, 1))
    assert mine.take(torch.tensor([2, 0])).ids == (mine.ids[2], mine.ids[0])


def test_nothing_is_changed_in_place():
    with pytest.raises(FrozenInstanceError):
        owned().ids = ()
