"""How a round is handed over: counts in any reasonable form, and slips that are said."""

import numpy as np
import pytest
import torch
from torch import nn

from datadefense.core.errors import InputError
from datadefense.core.submissions import counts_of, submissions_of

NAMES = ("0.weight", "0.bias")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (None, [1, 1, 1]),
        (7, [7, 7, 7]),
        (np.int64(7), [7, 7, 7]),
        (np.array(7), [7, 7, 7]),
        (torch.tensor(7), [7, 7, 7]),
        ([5, 6, 7], [5, 6, 7]),
        ((5, 6, 7), [5, 6, 7]),
        (iter([5, 6, 7]), [5, 6, 7]),
        (torch.tensor([5, 6, 7]), [5, 6, 7]),
        (torch.tensor([5, 6, 7], dtype=torch.uint8), [5, 6, 7]),
        (np.array([5, 6, 7], dtype=np.uint16), [5, 6, 7]),
        ([torch.tensor(5), np.int8(6), np.array(7)], [5, 6, 7]),
        ({"a": 5, "b": torch.tensor(6), "c": 7}, [5, 6, 7]),
        ({"c": 7, "a": 5, "somebody else": 3}, [5, None, 7]),
        ({}, [None, None, None]),
    ],
)
def test_counts(given, found):
    counts = counts_of(given, ["a", "b", "c"])
    assert list(counts) == ["a", "b", "c"]
    assert list(counts.values()) == found


def test_a_vector_of_one_is_one_client():
    assert counts_of(torch.tensor([7]), ["a"]) == {"a": 7}
    with pytest.raises(InputError, match="one count a client: got 2 updates, 1 counts"):
        counts_of(torch.tensor([7]), ["a", "b"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (7.0, r"num_examples must be an integer, or one integer a client .*, got 7\.0"),
        ("100", "got '100'"),
        (b"100", "got b'100'"),
        (object(), "got a object"),
        (torch.tensor([1.0, 2.0]), r"got float32 of shape \(2,\)"),
        (np.array([True, False]), r"got bool of shape \(2,\)"),
        (torch.ones(2, 1, dtype=torch.int64), r"got int64 of shape \(2, 1\)"),
        ([1, 2, 3], "one count a client: got 2 updates, 3 counts"),
        ({"0": 5, "1": 6}, "no count for any client: its ids are like '0', those that sent like 0"),
    ],
)
def test_counts_that_are_none(given, message):
    with pytest.raises(InputError, match=message):
        counts_of(given, [0, 1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (nn.Sequential(nn.Linear(2, 2)).state_dict(), "^this is one client's state dict: give a"),
        ({"0.bias": torch.zeros(2)}, "^this is one client's state dict: give a list of them$"),
        (torch.zeros(6), "^this is one client's vector: give a list of them$"),
        (np.zeros(6), "^this is one client's vector: give a list of them$"),
        (None, "^what clients sent must be a list, or a mapping .*, got None$"),
        (7, "got 7"),
        ("models", "got 'models'"),
        (nn.Sequential(nn.Linear(2, 2)), "got a Sequential"),
    ],
)
def test_what_is_no_round(given, message):
    with pytest.raises(InputError, match=message):
        submissions_of(given, None, NAMES)


@pytest.mark.parametrize(
    ("given", "clients"),
    [
        ([1, 2], [0, 1]),
        ((one for one in (1, 2)), [0, 1]),
        ({"a": 1, 7: 2}, ["a", 7]),
        (torch.zeros(2, 6), [0, 1]),
        ({}, []),
        ([], []),
    ],
)
def test_rounds(given, clients):
    assert [one.client_id for one in submissions_of(given, 3, NAMES)] == clients
