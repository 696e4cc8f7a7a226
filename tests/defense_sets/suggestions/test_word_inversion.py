"""The word that turns texts: found among all, with scores as by hand."""

import pytest
import torch
from tests.defense_sets.suggestions.toy_models import WORD, word_models

from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError
from datadefense.defense_sets.suggestions.word_inversion import invert_word, put_word, word_scores


def texts(count=30):
    return torch.randint(20, 40, (count, 6), generator=generator(0, "texts"), dtype=torch.int32)


@pytest.mark.parametrize("words", [range(2, 200), [WORD], [WORD, 3]])
def test_the_word_is_found(words):
    one = invert_word(texts(), 1, words, word_models())
    assert (one.target, one.token, one.turned, one.turned_trusted) == (1, WORD, 1.0, 0.0)


def test_one_text_is_enough():
    assert invert_word(texts(1), 1, range(2, 50), word_models()).token == WORD


def test_scores_by_hand():
    models, given = word_models(), texts(4)
    scores = word_scores(given, 1, [3, WORD, 90], models)
    for word, score in zip([3, WORD, 90], scores.tolist(), strict=True):
        gains = []
        for row in given.tolist():
            read = torch.tensor([[*row[1:], word]])
            suspect, trusted = models.suspect(read)[0], models.trusted(read)[0]
            gains.append(float(suspect.softmax(0)[1] - trusted.softmax(0)[1]))
        assert score == pytest.approx(sum(gains) / 4, abs=1e-6)


def test_a_word_goes_behind():
    given = texts(3)
    made = put_word(given, 9)
    assert made.dtype == given.dtype
    assert made.tolist() == [[*row[1:], 9] for row in given.tolist()]


@pytest.mark.parametrize(
    ("given", "words", "message"),
    [
        (texts()[:0], [3], "texts of other classes than 1 and words to try, got 0 texts, 1 words"),
        (texts(), [], "got 30 texts, 0 words"),
        (torch.zeros(2, 1, 28, 28), [3], r"a word needs texts, \[n, length\], got \[2, 1, 28, 28"),
    ],
)
def test_what_has_no_words(given, words, message):
    with pytest.raises(SettingsError, match=message):
        invert_word(given, 1, words, word_models())
