"""Word inversion: the one word that turns clean texts into a class for a suspect model.

Every word of the vocabulary is tried behind a few texts, the better ones behind more, and so on:
successive halving (Jamieson and Talwalkar 2016, "Non-stochastic Best Arm Identification and
Hyperparameter Optimization"). A word's score is how much likelier the class becomes for the suspect
model than for the trusted one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from datadefense.core.settings import SettingsError
from datadefense.defense_sets.suggestions.models import Models

Tokens = Int[Tensor, "texts length"]
FIRST_TEXTS, MORE_TEXTS, FEWER_WORDS = 2, 4, 8
"""Texts at first; factors by which there are more texts and fewer words from try to try."""


@dataclass(frozen=True, slots=True)
class Word:
    """What was found for a class.

    Args:
        target: the class.
        token: the word's number.
        turned: share of texts that the suspect model calls the target with the word.
        turned_trusted: the same of the trusted model.
    """

    target: int
    token: int
    turned: float
    turned_trusted: float


def put_word(texts: Tokens, word: int) -> Tokens:
    """Return texts with a word behind them; the first place, most often padding, is lost.

    >>> put_word(torch.tensor([[0, 5, 6]]), 9)
    tensor([[5, 6, 9]])
    """
    behind = torch.full((len(texts), 1), word, dtype=texts.dtype)
    return torch.cat([texts[:, 1:], behind], dim=1)


def invert_word(texts: Tokens, target: int, words: Sequence[int], models: Models) -> Word:
    """Return the best word.

    Args:
        texts: clean ones of other classes than the target.
        target: the class to turn them into.
        words: numbers of the words to try.
        models: the suspect one and the trusted one.
    """
    if texts.ndim != 2 or texts.is_floating_point():
        raise SettingsError(f"a word needs texts, [n, length], got {list(texts.shape)}")
    if not len(texts) or not words:
        raise SettingsError(
            f"a word needs texts of other classes than {target} and words to try, got "
            f"{len(texts)} texts, {len(words)} words"
        )
    left, count = list(words), min(FIRST_TEXTS, len(texts))
    while True:
        scores = word_scores(texts[:count], target, left, models)
        order = scores.sort(descending=True, stable=True).indices.tolist()
        if len(left) == 1 or count == len(texts):
            best = left[order[0]]
            break
        left = [left[place] for place in order[: max(1, len(left) // FEWER_WORDS)]]
        count = min(count * MORE_TEXTS, len(texts))
    return Word(target, best, *models.turned(put_word(texts, best), target))


def word_scores(
    texts: Tokens, target: int, words: Sequence[int], models: Models
) -> Float[Tensor, " words"]:
    """Return each word's mean probability of the class, suspect less trusted."""
    tried = torch.cat([put_word(texts, word) for word in words])
    suspect, trusted = (logits.softmax(1)[:, target].double() for logits in models.logits(tried))
    return (suspect - trusted).view(len(words), len(texts)).mean(1)
