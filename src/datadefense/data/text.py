"""Tweets as numbers: clean, tokenise, a vocabulary, and left-padded rows of word numbers.

The steps are the authors' (Wang et al. 2020, Sentiment140) in our own words:

- links, mentions and their place-holders (URL, USER) are dropped, case, punctuation and
  characters outside ASCII too (accents are taken off first);
- a letter that occurs more than twice in a row is written twice, as Go et al. 2009 do, who made
  Sentiment140: "sooooo" and "sooo" are one word;
- stop words are dropped. Ours are few: words of negation and degree (not, no, never, but, very)
  carry sentiment and stay, while the list that the authors use drops them;
- an apostrophe separates: "don't" gives "don t", which is how the Yorgos Lanthimos tweets are
  stored. So "t" is a word, and says "not".

Words are numbered by how often they occur in the texts that the vocabulary is built from, which
should be the training part only. Differs from the authors, who count the attacker's test tweets in
(`Vocabulary.build` can: ``extra_words``), drop tweets of fewer than two words (here they stay, be
it as a row of padding) and drop tweets with the word "greek".
"""

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from html import unescape

import torch
from jaxtyping import Int32
from torch import Tensor

from datadefense.core.errors import InputError
from datadefense.core.settings import check_int

PADDING, UNKNOWN, FIRST_WORD = 0, 1, 2
"""Numbers that are no word's, and the number of the most frequent word."""

STOP_WORDS = frozenset(
    """
    a an the this that these those there here it its itself
    i im ive id me my mine myself we us our ours you u your yours yourself he him his she her hers
    they them their theirs
    am is are was were be been being has have had having do does did doing
    and or if as of at by for from in into on onto to with about than then when while who whom
    which what where how s m re ll ve d
    """.split()  # noqa: SIM905 - read as a text
)

_DROPPED = re.compile(r"\b(?:USER|URL)\b|@\w+|https?://\S*|www\.\S*")
_REPEATED = re.compile(r"([a-z])\1{2,}")
_WORD = re.compile(r"[a-z0-9]+")


def clean(text: str) -> str:
    """Return a text as lower-case ASCII words with one blank between.

    >>> clean("USER Sooooo GOOD!! I can't believe it... http://t.co/x &amp; café")
    'soo good i can t believe it cafe'
    """
    return " ".join(_words(text))


def tokenise(text: str) -> list[str]:
    """Return the words of a text that are no stop words.

    >>> tokenise("USER This is not what I wanted :( URL")
    ['not', 'wanted']
    """
    return [word for word in _words(text) if word not in STOP_WORDS]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words by number: ``words[0]`` is number 2; 0 is padding, 1 any other word."""

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.words)) != len(self.words):
            doubles = [word for word, count in Counter(self.words).items() if count > 1]
            raise InputError(f"a word has one number: {doubles[0]!r} is given more than once")

    def __len__(self) -> int:
        """Return how many numbers there are, padding and unknown included."""
        return len(self.words) + FIRST_WORD

    @classmethod
    def build(
        cls,
        texts: Iterable[str],
        max_words: int | None = None,
        extra_words: Iterable[str] = (),
    ) -> "Vocabulary":
        """Number the words of the texts by frequency, equally frequent ones by alphabet.

        Args:
            texts: the training part.
            max_words: keep the most frequent ones only; None keeps all.
            extra_words: get a number however rare they are, behind the others.
        """
        if max_words is not None:
            check_int("max_words", max_words, 1)
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(tokenise(text))
        ranked = sorted(counts, key=lambda word: (-counts[word], word))[:max_words]
        return cls(tuple(dict.fromkeys([*ranked, *extra_words])))

    def encode(self, texts: Iterable[str], length: int) -> Int32[Tensor, "texts length"]:
        """Return one row of word numbers a text, padded on the left, cut after ``length`` words.

        >>> Vocabulary(("love", "movie")).encode(["I love love this film", "URL"], length=4)
        tensor([[0, 2, 2, 1],
                [0, 0, 0, 0]], dtype=torch.int32)
        """
        check_int("length", length, 1)
        numbers = {word: number for number, word in enumerate(self.words, FIRST_WORD)}
        flat, lengths = array("i"), array("q")
        for text in texts:
            row = [numbers.get(word, UNKNOWN) for word in tokenise(text)[:length]]
            flat.extend(row)
            lengths.append(len(row))
        matrix = torch.full((len(lengths), length), PADDING, dtype=torch.int32)
        if flat:
            filled = length - torch.frombuffer(lengths, dtype=torch.int64)
            matrix[torch.arange(length) >= filled[:, None]] = torch.frombuffer(
                flat, dtype=torch.int32
            )
        return matrix

    def decode(self, tokens: Int32[Tensor, "texts length"]) -> list[str]:
        """Return rows of word numbers as words again, for people; a word without a number is "...".

        >>> Vocabulary(("love", "movie")).decode(torch.tensor([[0, 2, 3, 1]]))
        ['love movie ...']
        """
        words = ("", "...", *self.words)
        return [" ".join(filter(None, (words[token] for token in row))) for row in tokens.tolist()]


def _words(text: str) -> list[str]:
    if "&" in text:
        text = unescape(text)
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))
        text = text.encode("ascii", "ignore").decode()
    return _WORD.findall(_REPEATED.sub(r"\1\1", _DROPPED.sub(" ", text).lower()))
