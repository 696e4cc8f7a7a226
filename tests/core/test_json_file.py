"""JSON of ours: strict on its way out; on its way in anything wrong is one sentence."""

import json
import math
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datadefense.core.json_file import built, from_json, read_json, read_lines, to_json
from datadefense.core.round_files import FileError


@dataclass(frozen=True, slots=True)
class Sample:
    place: int
    share: float | None
    names: list[int | str]
    columns: dict[str, list[float | None]] = field(default_factory=dict)
    rest: dict[str, Any] = field(default_factory=dict)


WHOLE = {"place": 1, "share": 0.5, "names": ["a", 7]}
DAMAGE = [b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"{", b"", b"9" * 5000, b"\x00"]


def test_what_is_not_finite_is_null():
    values = {"a": [1.0, math.nan], "b": {"c": math.inf}, "d": (2, -math.inf)}
    text = to_json(values)
    assert text == '{"a": [1.0, null], "b": {"c": null}, "d": [2, null]}'
    assert json.loads(text) == from_json(b'{"a": [1.0, NaN], "b": {"c": Infinity}, "d": [2, NaN]}')


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_one_sentence_that_names_the_place(tmp_path, damage):
    path = tmp_path / "file"
    path.write_bytes(damage)
    with pytest.raises(FileError, match=r"file is damaged: [^\n]{1,250}$"):
        read_json(path, dict)
    good = to_json(WHOLE).encode()
    path.write_bytes(good + b"\n" + damage + b"\n" + good + b"\n")
    with pytest.raises(FileError, match=r"file, line 2 is not a sample: [^\n]{1,250}$"):
        read_lines(path, "a sample", lambda values: built(Sample, values))


@pytest.mark.parametrize("take_unended", [False, True])
def test_a_last_line_that_was_cut_off(tmp_path, take_unended):
    path = tmp_path / "file"
    line = to_json(WHOLE).encode()
    for cut in range(len(line) + 1):
        path.write_bytes(line + b"\n" + line[:cut])
        made, cut_off = read_lines(
            path, "a sample", lambda values: built(Sample, values), take_unended=take_unended
        )
        taken = take_unended and cut == len(line)
        assert made == [Sample(**WHOLE)] * (2 if taken else 1)
        assert cut_off == (cut > 0 and not taken)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"place": "<b>"}, "place must be an integer, got '<b>'"),
        ({"place": True}, "place must be an integer, got True"),
        ({"place": 1.0}, "place must be an integer, got 1.0"),
        ({"share": "1"}, "share must be a number or null, got '1'"),
        ({"names": {}}, "names must be a list, got a dict"),
        ({"names": [[]]}, "what is in names must be an integer or a text, got a list"),
        ({"columns": []}, "columns must be an object, got a list"),
        ({"columns": {"a": 3}}, "what is in columns must be a list, got 3"),
        ({"columns": {"a": ["b"]}}, "what is in what is in columns must be a number or null"),
        ({"colour": "red"}, "there is no 'colour'"),
    ],
)
def test_types_are_those_of_the_class(changes, message):
    with pytest.raises(ValueError, match=message):
        built(Sample, WHOLE | changes)


def test_wholes_are_numbers_and_the_rest_is_anything():
    made = built(Sample, WHOLE | {"share": 1, "columns": {"a": [1, None]}, "rest": {"x": [{}]}})
    assert made == Sample(1, 1, ["a", 7], {"a": [1, None]}, {"x": [{}]})
    for values in ([], None, 3, {}):
        with pytest.raises(ValueError, match=r"must be an object|it has no place, share, names"):
            built(Sample, values)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["place", "share", "names", "columns", "rest"]), JSON))
def test_any_values_are_built_or_refused(tmp_path_factory, values):
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps(values))
    try:
        made = read_json(path, lambda read: built(Sample, read))
    except FileError:
        return
    assert type(made.place) is int
    assert from_json(to_json(made.rest).encode()) == made.rest
