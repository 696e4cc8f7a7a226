import pytest

from datadefense.data.errors import HEAD, TAIL, DataError, one_line, refusing


def test_a_message_is_one_printable_line():
    text = str(DataError("a\x1b]0;owned\x07b\nc\u202ed\x85"))
    assert text == "a?]0;owned?b?c?d?"


def test_a_message_is_short_and_keeps_both_ends():
    text = str(DataError("where: " + "x" * 10**8 + ": what was wrong"))
    assert len(text) == HEAD + TAIL + 5
    assert text.startswith("where: x")
    assert text.endswith("x: what was wrong")


def test_an_error_of_many_megabytes_is_told_in_one_line():
    assert one_line(ValueError("first\n" + "x" * 10**7)) == "first"
    assert len(one_line(ValueError("x" * 10**8))) == 4 * (HEAD + TAIL)
    assert one_line(KeyError()) == "KeyError"


@pytest.mark.parametrize("kind", [ValueError, MemoryError, RecursionError, AttributeError])
def test_whatever_goes_wrong_is_a_data_error(kind):
    with pytest.raises(DataError, match=r"^file is broken: it \?\[2J$"), refusing("file is broken"):
        raise kind("it \x1b[2J")
    with pytest.raises(DataError, match="^own words$"), refusing("file is broken"):
        raise DataError("own words")
