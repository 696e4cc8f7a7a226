"""Splitting examples among their holders, and scaled pixels there and back."""

import pytest
import torch

from datadefense.core.examples import Examples
from datadefense.core.settings import SettingsError
from datadefense.tasks.base import Scaling, split_examples, split_rows


def test_rows_are_a_partition_drawn_by_the_seed():
    first = split_rows(50, [10, 0, 15], seed=3)
    assert [len(rows) for rows in first] == [10, 0, 15, 25]
    assert torch.cat(first).sort().values.equal(torch.arange(50))
    again, other = split_rows(50, [10, 0, 15], seed=3), split_rows(50, [10, 0, 15], seed=4)
    assert all(torch.equal(before, after) for before, after in zip(first, again, strict=True))
    assert not torch.equal(torch.cat(first), torch.cat(other))


def test_the_examples_are_those_of_the_rows():
    examples = Examples(torch.arange(30.0)[:, None], torch.arange(30) % 3)
    parts = zip(split_examples(examples, [4, 6], 1), split_rows(30, [4, 6], 1), strict=True)
    for dealt, rows in parts:
        assert torch.equal(dealt.inputs[:, 0], rows.float())
        assert torch.equal(dealt.labels, rows % 3)


def test_something_must_be_left():
    with pytest.raises(SettingsError, match=r"must leave an example: 4 \+ 6 < 10 examples"):
        split_rows(10, [4, 6], seed=0)


def test_scaled_pixels_there_and_back():
    scaling = Scaling(0.25, 0.5)
    pixels = torch.arange(256, dtype=torch.uint8)
    inputs = scaling.inputs(pixels)
    assert inputs[0] == -0.5
    assert inputs[255] == 1.5
    assert torch.equal(scaling.pixels(inputs), pixels)
    beyond = scaling.pixels(torch.tensor([-9.0, 9.0]))
    assert beyond.tolist() == [0, 255]
