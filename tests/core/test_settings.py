from dataclasses import dataclass
from typing import Literal

import pytest

from datadefense.core.settings import SettingsError, build, read_pairs, setting
from datadefense.defenses import Krum, MultiKrum, create


@dataclass(frozen=True)
class Example:
    count: int = setting(1, "how many")
    rate: float = setting(0.5, "how fast")
    flag: bool = setting(False, "whether")
    mode: Literal["slow", "fast"] = setting("slow", "how")
    limit: int | None = setting(None, "at most")
    title: str = setting("", "what")


def test_texts_become_values():
    built = build(
        Example,
        {
            "count": "3",
            "rate": "1e-3",
            "flag": "True",
            "mode": "fast",
            "limit": "7",
            "title": "a b",
        },
    )
    assert built == Example(3, 0.001, True, "fast", 7, "a b")
    assert build(Example, {"limit": "none"}).limit is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"count": "1.5"}, "count must be an integer, got '1.5'"),
        ({"rate": "quick"}, "rate must be a number, got 'quick'"),
        ({"flag": "maybe"}, "flag must be true or false, got 'maybe'"),
        ({"mode": "medium"}, "mode must be slow or fast, got 'medium'"),
        ({"limit": "x"}, "limit must be an integer or none, got 'x'"),
        ({"cuont": "1"}, "Example has no setting 'cuont', did you mean 'count'?"),
        ({"zzz": "1"}, "there are: count, flag, limit, mode, rate, title"),
    ],
)
def test_what_cannot_be_read(values, message):
    with pytest.raises(SettingsError) as caught:
        build(Example, values)
    assert message in str(caught.value)


def test_pairs():
    assert read_pairs(["a=1", " b = x=y "]) == {"a": "1", "b": "x=y"}
    for bad in (["a"], ["=1"], ["a=1", "a=2"]):
        with pytest.raises(SettingsError):
            read_pairs(bad)


def test_create():
    assert create("krum", {"num_malicious": "2"}) == Krum(2)
    assert create("krum", {"num_malicious": 2}) == Krum(2)
    with pytest.raises(SettingsError, match="num_malicious must be an integer, got 2.7"):
        create("krum", {"num_malicious": 2.7})
    assert create("multi-krum", {"weighting": "examples"}) == MultiKrum(1, "examples")
    with pytest.raises(SettingsError, match="no defense is called 'krumm', did you mean 'krum'?"):
        create("krumm")
    with pytest.raises(SettingsError, match="num_malicious must be >= 0, got -1"):
        create("krum", {"num_malicious": "-1"})
    with pytest.raises(SettingsError, match="it has no settings"):
        create("median", {"f": "1"})
