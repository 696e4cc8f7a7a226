"""Inputs there and back: from a folder to the model, and from the model to a folder."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.data.folders import write_tweets
from tests.defense_sets.own_sets import digits, source

from datadefense.data.errors import DataError
from datadefense.defense_sets.folder import DefenseSetSource
from datadefense.defense_sets.inputs import to_model_inputs
from datadefense.runs.build import load_data
from datadefense.runs.configure import configure

pytest.importorskip("mlxtend")
OWN = Path("own")
SMALL = {"attack_clean": "10", "attack_poison": "8", "server.poison": "5", "length": "5"}


def taken(given):
    return to_model_inputs(given, OWN, digits(), "digits-edge")


def test_digits_there_and_back():
    clean = digits().server_clean.inputs[:12]
    assert torch.equal(taken(source()), clean)
    assert torch.equal(digits().as_stored(clean), source().inputs)
    strange = digits().server_poison.inputs
    rounded = (digits().as_stored(strange) / 255 - 0.1307) / 0.3081
    assert (strange - rounded).abs().max() <= 0.5 / 255 / 0.3081 + 1e-6


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (("a text",) * 12, "own holds texts, digits-edge takes inputs [1, 28, 28]"),
        (torch.zeros(12, 1, 20, 20, dtype=torch.uint8), "own holds inputs [1, 20, 20]"),
        (torch.zeros(12, 3, 28, 28, dtype=torch.uint8), "own holds inputs [3, 28, 28]"),
        (torch.zeros(12, 784, dtype=torch.int64), "own holds inputs [784]"),
    ],
)
def test_another_kind_of_data(inputs, message):
    with pytest.raises(DataError) as caught:
        taken(replace(source(), inputs=inputs))
    assert message in str(caught.value)


def test_texts_become_the_tasks_tokens(tmp_path):
    write_tweets(tmp_path, 600, 40)
    data = load_data(configure("sentiment-yl", "cpu", SMALL), tmp_path)
    texts = ("yorgos lanthimos good", "own3 bad zzz")
    labels, known = torch.tensor([0, 0]), torch.tensor([False, True])
    given = DefenseSetSource(texts, labels, known, ids=("a", "b"))
    tokens = to_model_inputs(given, OWN, data, "sentiment-yl")
    words = data.module.embedding.num_embeddings
    assert tokens[0, :-1].tolist() == [0, 0, words - 2, words - 1]
    assert tokens[1, -1] == 1
    again = to_model_inputs(replace(given, inputs=tokens), OWN, data, "sentiment-yl")
    assert torch.equal(again, tokens)
    far = replace(given, inputs=torch.full((2, 5), words))
    with pytest.raises(DataError, match=f"own: tokens must be in 0..{words - 1}, those of 'a' are"):
        to_model_inputs(far, OWN, data, "sentiment-yl")
