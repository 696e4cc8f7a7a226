"""``datadefense list``: what there is to choose from, whole where it is piped."""

import pytest

from datadefense.attacks import ATTACKS
from datadefense.runs.config import document_of, flat_settings
from datadefense.runs.configure import configure
from datadefense.schedules import SCHEDULES
from datadefense.tasks import TASKS


def test_alone_it_shows_what_can_be_listed(typed):
    ended = typed("list")
    assert ended.code == 0
    for name in ("tasks", "attacks", "schedules", "settings", "defenses", "studies"):
        assert name in ended.out


@pytest.mark.parametrize(
    ("kind", "names"), [("tasks", TASKS), ("attacks", ["none", *ATTACKS]), ("schedules", SCHEDULES)]
)
def test_every_plugin_is_there_with_its_settings(typed, kind, names):
    ended = typed("list", kind)
    assert ended.code == 0
    first = [line.split()[0] for line in ended.out.splitlines() if line[:1] not in (" ", "")]
    assert set(names) <= set(first)


def test_an_attack_says_what_it_knows(typed):
    lines = typed("list", "attacks").out.splitlines()
    (lie,) = [line for line in lines if line.startswith("lie ")]
    assert lie.endswith("[knows how large a round is; trains longer]")
    assert any(line.strip().startswith("z=none  standard deviations") for line in lines)


def test_every_setting_of_a_run_has_its_value_and_what_it_is(typed):
    words = ("--task", "cifar10-trigger", "--attack", "lie", "--defense", "multi-krum")
    ended = typed("list", "settings", *words, "--scale", "paper")
    assert ended.code == 0
    heading, *lines = ended.out.splitlines()
    assert heading.split() == ["setting", "value", "what", "it", "is"]
    chosen = configure("cifar10-trigger", "paper", {"attack": "lie", "defense": "multi-krum"})
    expected = {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in flat_settings(document_of(chosen)).items()
        if key != "scale"
    }
    shown = {line.split()[0]: line.split()[1] for line in lines}
    assert shown == expected
    assert all(len(line.split()) > 2 for line in lines), "each is explained"


def test_settings_of_a_composed_defense_are_explained_too(typed):
    ended = typed("list", "settings", "--defense", "nnm+multi-krum+fedadam")
    shown = {line.split()[0]: line.split(maxsplit=2)[2:] for line in ended.out.splitlines()}
    assert shown["defense.fedadam.tau"] != []
    assert all(words for key, words in shown.items() if key.startswith("defense"))


def test_lines_are_whole_in_a_narrow_pipe(typed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    ended = typed("list", "settings")
    (line,) = [line for line in ended.out.splitlines() if line.startswith("warm.epochs")]
    assert line.endswith("most passes; all of them if no accuracy is set; 0: no training")


def test_an_unknown_name_is_one_line(typed):
    ended = typed("list", "settings", "--attack", "pdg")
    assert (ended.code, ended.err) == (2, "error: no attack is called 'pdg', did you mean 'pgd'?\n")
