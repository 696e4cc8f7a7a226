import pytest
import torch

from datadefense.core.examples import Examples
from datadefense.core.settings import SettingsError
from datadefense.tasks.base import deal, hands


def test_hands_are_a_partition_drawn_by_the_seed():
    first = hands(50, [10, 0, 15], seed=3)
    assert [len(hand) for hand in first] == [10, 0, 15, 25]
    assert torch.cat(first).sort().values.equal(torch.arange(50))
    again, other = hands(50, [10, 0, 15], seed=3), hands(50, [10, 0, 15], seed=4)
    assert all(torch.equal(one, two) for one, two in zip(first, again, strict=True))
    assert not torch.equal(torch.cat(first), torch.cat(other))


def test_what_is_dealt_are_the_examples_of_the_hands():
    examples = Examples(torch.arange(30.0)[:, None], torch.arange(30) % 3)
    for dealt, hand in zip(deal(examples, [4, 6], 1), hands(30, [4, 6], 1), strict=True):
        assert torch.equal(dealt.inputs[:, 0], hand.float())
        assert torch.equal(dealt.labels, hand % 3)


def test_something_must_be_left():
    with pytest.raises(SettingsError, match="10 examples are spoken for, there are 10"):
        hands(10, [4, 6], seed=0)
