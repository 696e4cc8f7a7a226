"""Tweets to numbers and back, word by word."""

import re
import time
from collections import Counter
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from datadefense.data.text import FIRST_WORD, STOP_WORDS, UNKNOWN, Vocabulary, clean, tokenise

DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("USER hello URL", "hello"),
        ("USERs are users, CURL is no URL", "users are users curl is no"),
        ("@some_body see https://x.org/a?b=1 and www.x.org.", "see and"),
        ("Don't!! can\u2019t...", "don t can t"),
        ("caf\u00e9 \u4f60\u597d na\u00efve", "cafe naive"),
        ("Hellooooo soooo coooool 10000", "helloo soo cool 10000"),
        ("rock &amp; roll &lt;3 &quot;yes&quot;", "rock roll 3 yes"),
        ("a\nb\tc", "a b c"),
        ("\u210cappy \uff20me caf&eacute;", "happy cafe"),
        ("#hash_tag", "hash tag"),
    ],
)
def test_clean(text, expected):
    assert clean(text) == expected


@given(st.text())
def test_clean_leaves_words_of_ascii(text):
    assert re.fullmatch(r"(?:[a-z0-9]+(?: [a-z0-9]+)*)?", clean(text))
    assert clean(clean(text)) == clean(text)
    assert not set(tokenise(text)) & STOP_WORDS


def test_negations_are_no_stop_words():
    words = tokenise("I don't like it, not at all, no, never; but they isn't")
    assert " ".join(words) == "don t like not all no never but isn t"


WORDS = st.sampled_from(["love", "hate", "film", "movie", "sun", "rain", "not", "good", "bad"])
TEXTS = st.lists(st.lists(WORDS, max_size=8).map(" ".join), max_size=12)


@given(TEXTS, st.none() | st.integers(1, 8))
def test_words_are_numbered_by_frequency(texts, max_words):
    vocabulary = Vocabulary.build(texts, max_words)
    counts = Counter(" ".join(texts).split())
    expected = sorted(counts, key=lambda word: (-counts[word], word))[:max_words]
    assert vocabulary.words == tuple(expected)
    assert len(vocabulary) == len(expected) + 2


@given(TEXTS, TEXTS, st.integers(1, 10))
def test_encode_word_by_word(training, texts, length):
    vocabulary = Vocabulary.build(training, max_words=5)
    matrix = vocabulary.encode(texts, length)
    assert matrix.shape == (len(texts), length)
    assert matrix.dtype == torch.int32
    for row, text in zip(matrix.tolist(), texts, strict=True):
        words = text.split()[:length]
        numbers = [
            vocabulary.words.index(word) + FIRST_WORD if word in vocabulary.words else UNKNOWN
            for word in words
        ]
        assert row == [0] * (length - len(words)) + numbers


def test_extra_words_come_last_and_once():
    vocabulary = Vocabulary.build(["sun sun rain"], 1, extra_words=["yorgos", "sun", "yorgos"])
    assert vocabulary.words == ("sun", "yorgos")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Vocabulary(("a", "b", "a")), "'a' is given more than once"),
        (lambda: Vocabulary.build([], max_words=0), "max_words must be >= 1, got 0"),
        (lambda: Vocabulary(()).encode(["x"], 0), "length must be >= 1, got 0"),
    ],
)
def test_bad_input_names_the_inequality(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_real_tweets_are_fast():
    """A twentieth of what 400,000 tweets take must stay under a twentieth of a minute."""
    parquet = pytest.importorskip("pyarrow.parquet")
    path = DATA / "sentiment140" / "test.parquet"
    if not path.is_file():
        pytest.skip(f"no {path}: this test needs real tweets")
    texts = parquet.read_table(path)["text"].to_pylist()
    assert len(texts) == 20_000
    started = time.perf_counter()
    vocabulary = Vocabulary.build(texts, max_words=10_000)
    matrix = vocabulary.encode(texts, 30)
    assert time.perf_counter() - started < 3
    words = (matrix != 0).sum()
    assert (matrix == UNKNOWN).sum() < 0.1 * words
    assert 6 < words / len(texts) < 10
    assert not {"user", "url", "http", "www"} & set(vocabulary.words[:300])
