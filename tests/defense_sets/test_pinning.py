"""A run with a defense set of one's own: known by its content, checked before it is used."""

import dataclasses
from pathlib import Path

import pytest
import torch
from tests.defense_sets.own_sets import digits, own, pixels, source

from datadefense.core.settings import SettingsError
from datadefense.data.errors import DataError
from datadefense.defense_sets.folder import (
    DefenseSetSource,
    read_defense_folder,
    write_defense_folder,
)
from datadefense.defense_sets.pinning import digest
from datadefense.runs import build
from datadefense.runs.build import assemble
from datadefense.runs.config import Experiment, pinned, read_toml
from datadefense.runs.configure import configure
from datadefense.runs.run import resume, start
from datadefense.simulation.pool import Pool

pytest.importorskip("mlxtend")
QUICK = {
    "rounds": "2",
    "clients": "12",
    "clients_per_round": "4",
    "federation.epochs": "1",
    "attack.epochs": "1",
    "warm.accuracy_percent": "20",
    "checkpoint_every": "1",
    "defense": "datadefense",
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path / "cache"))


def configured(folder, **changes):
    return configure("digits-edge", "cpu", QUICK | {"server.folder": str(folder)} | changes)


def carried_out(folder, out, **changes):
    with start(configured(folder, **changes), out) as run, Pool(run.federation) as pool:
        list(run.rounds(pool))
        return run, run.finish(pool)


TWO = DefenseSetSource(("a", "bc"), torch.tensor([0, 1]), torch.tensor([True, False]))
FLIPPED = torch.arange(11, -1, -1)


@pytest.mark.parametrize(
    "changes",
    [
        {"inputs": pixels(torch.zeros(12, 1, 28, 28))},
        {"labels": torch.zeros(12, dtype=torch.int64)},
        {"known_clean": torch.arange(12) < 7},
        {"ids": tuple("abcdefghijkl")},
        {"provenance": ("poisoned",) * 12},
        {"features": torch.zeros(12, 3)},
        {"features": torch.ones(12, 3)},
    ],
)
def test_the_digest_is_of_all_that_matters(changes):
    given = source()
    assert digest(dataclasses.replace(given, **changes)) != digest(given)


def test_the_digest_is_not_of_notes():
    given = source()
    assert digest(dataclasses.replace(given, notes=("looked at",) * 12)) == digest(given)
    turned = DefenseSetSource(given.inputs[FLIPPED], given.labels[FLIPPED], given.known_clean)
    assert digest(turned) != digest(given)


def test_the_digest_of_texts():
    other = dataclasses.replace(TWO, inputs=("ab", "c"))
    assert digest(TWO) != digest(other)
    assert digest(TWO) == digest(dataclasses.replace(TWO))


def test_a_folder_that_is_saved_in_another_way_is_the_same(tmp_path):
    own(tmp_path / "own")
    before = digest(read_defense_folder(tmp_path / "own"))
    marks = tmp_path / "own" / "marks.csv"
    first, *lines = marks.read_text().splitlines()
    spreadsheet = "\r\n".join([first, *reversed(lines)]).replace(",", ";")
    marks.write_text("\ufeff" + spreadsheet, encoding="utf-8")
    assert digest(read_defense_folder(tmp_path / "own")) == before == digest(source())


def test_the_key_depends_on_the_content_and_not_on_the_place(tmp_path):
    own(tmp_path / "one")
    own(tmp_path / "same", notes=("moved",) * 12)
    own(tmp_path / "other", known_clean=torch.arange(12) < 7)
    one, same, other = (
        pinned(configured(tmp_path / name)).key() for name in ("one", "same", "other")
    )
    plain = configure("digits-edge", "cpu", QUICK)
    assert one == same
    assert len({one, other, plain.key()}) == 3
    with pytest.raises(SettingsError, match="has a key once it is `pinned`"):
        configured(tmp_path / "one").key()
    assert pinned(configured(tmp_path / "one")).without_attack() == plain.without_attack()
    assert pinned(plain) is plain


def test_no_folder_changes_no_key():
    assert "server" not in Experiment().changes()
    assert "server" not in configure("digits-edge", "cpu", QUICK).changes()


def test_a_place_is_stored_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own(Path("own"))
    assert pinned(configured("own")).server.folder == str(tmp_path / "own")


def test_the_server_holds_the_folder(tmp_path):
    made = own(tmp_path / "own")
    _, server = assemble(configured(tmp_path / "own"))
    owned = server.defense_set
    assert torch.equal(owned.examples.inputs, digits().server_clean.inputs[:12])
    assert torch.equal(owned.examples.labels, made.labels)
    assert torch.equal(owned.known_clean, made.known_clean)
    assert owned.ids == made.ids
    assert torch.equal(server.clean.inputs, owned.examples.inputs[:6])
    assert torch.equal(server.clean.labels, made.labels[:6])
    _, tasks_own = assemble(configure("digits-edge", "cpu", QUICK))
    assert torch.allclose(owned.features, tasks_own.defense_set.features[:12], atol=1e-5)


def test_features_of_ones_own_are_used(tmp_path):
    features = torch.arange(36.0).view(12, 3)
    own(tmp_path / "own", features=features)
    _, server = assemble(configured(tmp_path / "own"))
    assert torch.equal(server.defense_set.features, features)


@pytest.mark.parametrize("defense", ["datadefense", "fltrust"])
def test_a_run_and_its_resumption(tmp_path, defense):
    own(tmp_path / "own")
    out = tmp_path / "run"
    run, _ = carried_out(tmp_path / "own", out, defense=defense)
    stored = read_toml(out / "config.toml")
    assert stored == run.experiment
    assert stored.server.digest == digest(source())
    again = resume(out)
    assert again.done
    assert again.server.defense_set.ids == run.server.defense_set.ids
    assert torch.equal(again.progress.params, run.progress.params)


def test_a_folder_that_was_edited_since(tmp_path, monkeypatch):
    made = own(tmp_path / "own")
    out = tmp_path / "run"
    start(configured(tmp_path / "own"), out)
    (tmp_path / "own" / "marks.csv").write_text(
        "id,known_clean,note\n" + "".join(f"{one},yes,\n" for one in made.ids)
    )
    monkeypatch.setattr(build, "warm_start", None)
    with pytest.raises(DataError, match="own has changed since the run began .* undo that, or beg"):
        resume(out)
    (tmp_path / "own").rename(tmp_path / "elsewhere")
    with pytest.raises(
        DataError, match="own, the defense set of this run, is gone: put it back, or"
    ):
        resume(out)


def test_a_folder_that_was_moved(tmp_path):
    own(tmp_path / "own")
    out = tmp_path / "run"
    start(configured(tmp_path / "own"), out)
    (tmp_path / "own").rename(tmp_path / "elsewhere")
    config = out / "config.toml"
    config.write_text(config.read_text().replace("/own", "/elsewhere"))
    assert len(resume(out).server.defense_set) == 12


def test_hits_are_measured_where_the_poison_is_known(tmp_path):
    poison = digits().server_poison
    fields = {
        "inputs": pixels(torch.cat([digits().server_clean.inputs[:9], poison.inputs[:3]])),
        "labels": torch.cat([digits().server_clean.labels[:9], poison.labels[:3]]),
    }
    own(tmp_path / "told", **fields, provenance=("clean",) * 9 + ("poisoned",) * 3)
    run, summary = carried_out(tmp_path / "told", tmp_path / "a")
    assert run.poisoned() == set(run.server.defense_set.ids[9:])
    assert summary.detector_hits_percent is not None
    own(tmp_path / "untold", **fields, provenance=("reported",) * 12)
    run, summary = carried_out(tmp_path / "untold", tmp_path / "b")
    assert run.poisoned() == set()
    assert summary.detector_hits_percent is None


def broken(name, folder):
    """Write a set that digests-edge cannot use."""
    data = digits()
    clean = pixels(data.server_clean.inputs[:12])
    ids = tuple("abcdefghijkl")
    if name == "a text":
        write_defense_folder(TWO, folder)
    elif name == "another size":
        own(folder, inputs=clean[:, :, 4:24, 4:24].contiguous())
    elif name == "a label":
        own(folder, labels=torch.full((12,), 10), ids=ids)
    elif name == "the test":
        own(folder, inputs=pixels(data.test.inputs[:12]), ids=ids)
    elif name == "the backdoor test":
        own(folder, inputs=pixels(data.backdoor_test.inputs[:12]), ids=ids)
    elif name == "twice":
        own(folder, inputs=clean[:1].repeat(12, 1, 1, 1), labels=torch.ones(12).long(), ids=ids)
    elif name == "no mark":
        own(folder, known_clean=torch.zeros(12, dtype=torch.bool))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "own holds no defense set: there is no examples.parquet"),
        ("a text", "own holds texts, digits-edge takes inputs [1, 28, 28]"),
        ("another size", "own holds inputs [1, 20, 20], digits-edge takes inputs [1, 28, 28]"),
        ("a label", "at seed 0: the label of 'a' must be in 0..9, got 10, and 11 more: see datad"),
        ("the test", "12 of 12 examples are also in the test of digits-edge, the first is 'a'"),
        ("the backdoor test", "also in the backdoor test of digits-edge, the first is 'a'"),
        ("twice", "'a' and 'b' are the same example, and 10 more: see datadefense defense-set che"),
        ("no mark", "fltrust needs clean examples, and none is marked as known clean"),
    ],
)
def test_a_set_that_cannot_be_used_is_said_before_the_warm_start(
    tmp_path, monkeypatch, name, message
):
    broken(name, tmp_path / "own")
    monkeypatch.setattr(build, "warm_start", None)
    with pytest.raises(DataError) as caught:
        start(configured(tmp_path / "own", defense="fltrust"), tmp_path / "run")
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_doubts_are_said_and_no_hindrance(tmp_path, datadefense_log):
    own(tmp_path / "own", known_clean=torch.zeros(12, dtype=torch.bool))
    _, server = assemble(configured(tmp_path / "own"))
    assert len(server.clean) == 0
    assert "own: 0 examples are known clean, fewer than 5" in datadefense_log.text


@pytest.mark.parametrize(
    "pair",
    [
        ("known_clean", "50"),
        ("clean", "200"),
        ("wrong_marks_percent", "10"),
        ("marked_class", "3"),
        ("poison_view", "recoloured"),
    ],
)
def test_what_shapes_the_tasks_own_set_does_not_go_with_a_folder(pair):
    name, text = pair
    with pytest.raises(SettingsError) as caught:
        configured("own", **{f"server.{name}": text})
    assert str(caught.value).startswith(f"server.{name} cannot be set together with server.folder")


def test_a_digest_needs_a_folder():
    with pytest.raises(SettingsError, match="^server.digest needs a server.folder"):
        configure("digits-edge", "cpu", {"server.digest": "0123"})
