import re

import pytest

from datadefense.core.reasons import WORDS, Reason, in_words, pattern


@pytest.mark.parametrize("code", WORDS)
def test_the_words_of_each_code_hold_its_numbers_and_nothing_else(code):
    assert set(re.findall(r"{(.*?)}", WORDS[code])) <= {"value", "limit"}
    said = in_words(Reason(code, 12.3456, 7.0))
    assert "{" not in said
    assert ("12.3" in said, " 7" in said) == ("{value}" in WORDS[code], "{limit}" in WORDS[code])


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (Reason("norm", 50.0, 2.0), "norm 50, clipped to 2"),
        (Reason("norm", 50.0), "norm 50, clipped to ?"),
        (Reason("trust_in_it"), "trust in it"),
        (Reason("trust_in_it", 0.25), "trust in it 0.25"),
        (Reason("trust_in_it", 0.25, 0.5), "trust in it 0.25 against 0.5"),
        (Reason("norm", 1.0, 2.0, "words {value}\n"), "words {value}?"),
    ],
)
def test_words(reason, words):
    assert in_words(reason) == words


def test_a_pattern_is_the_same_whatever_the_numbers():
    assert pattern(Reason("trust", 1.0)) == pattern(Reason("trust", 2.0)) == "trust {value}"
