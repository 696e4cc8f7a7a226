"""A run: an experiment carried out, with everything about it in one folder.

``config.toml`` is the experiment; ``rounds.jsonl`` has one line a round; the checkpoint holds all
that is needed to go on to the very bits of a run that was never interrupted; ``summary.json`` and
``report.html`` are written at the end.
"""

import dataclasses
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from datadefense.attacks.schedule import Never
from datadefense.data.cache import cache_folder
from datadefense.defenses import FedAvg, create
from datadefense.defenses.base import Defense
from datadefense.experiments.assembly import POISONED, assemble
from datadefense.experiments.experiment import Experiment, read_toml, write_toml
from datadefense.experiments.report import render
from datadefense.experiments.summary import (
    Summary,
    attacker_weights,
    detector_hits,
    honest_weights,
    lifespan,
    seconds,
    seconds_in_all,
    success_rates,
    tail_mean,
)
from datadefense.experiments.warm_start import Report
from datadefense.files import FileError
from datadefense.server import Server
from datadefense.simulation.federation import Federation
from datadefense.simulation.pool import Pool
from datadefense.simulation.rounds import Progress, RoundRecord, begin, simulate
from datadefense.storage import StateError, load_state, save_state, write_text

logger = logging.getLogger(__name__)
CONFIG, ROUNDS, SUMMARY = "config.toml", "rounds.jsonl", "summary.json"
REPORT = "report.html"
CHECKPOINT, PREVIOUS = "checkpoint.safetensors", "checkpoint.previous.safetensors"


@dataclass(slots=True, eq=False)
class Run:
    """One run: build it with `start` or `resume`, then iterate over ``rounds``, then ``finish``."""

    experiment: Experiment
    folder: Path
    federation: Federation
    defense: Defense[Any]
    server: Server
    progress: Progress[Any]
    records: list[RoundRecord] = field(default_factory=list)

    def rounds(self, pool: Pool) -> Iterator[RoundRecord]:
        """Run what is left, storing each round before it is yielded."""
        experiment = self.experiment
        for record, progress in simulate(
            self.federation,
            self.defense,
            self.server,
            pool,
            progress=self.progress,
            rounds=experiment.rounds,
            evaluate_every=experiment.evaluate_every,
        ):
            self.records.append(record)
            self.progress = progress
            with _storing(self.folder), (self.folder / ROUNDS).open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(dataclasses.asdict(record)) + "\n")
                lines.flush()
                os.fsync(lines.fileno())
            if record.round % experiment.checkpoint_every == 0 or self.done:
                self.save()
            yield record

    @property
    def done(self) -> bool:
        """Whether all rounds have been run."""
        return self.progress.round >= self.experiment.rounds

    def save(self) -> None:
        """Write a checkpoint; the one before it stays, in case this one is damaged later."""
        current = self.folder / CHECKPOINT
        with _storing(self.folder):
            if current.exists():
                current.replace(self.folder / PREVIOUS)
            save_state(current, self.progress)

    def finish(self, pool: Pool) -> Summary:
        """Measure the floor (or take it from the cache) and write the summary."""
        floor = self.floor(pool)
        experiment, records = self.experiment, self.records
        rates = success_rates(records)
        accuracies = [r.ma_percent for r in records if r.ma_percent is not None]
        attackers, honest = attacker_weights(records), honest_weights(records)
        summary = Summary(
            setup=experiment.setup,
            scale=experiment.scale,
            defense=experiment.defense,
            attack=experiment.attack,
            seed=experiment.seed,
            rounds=experiment.rounds,
            ma_percent=tail_mean(accuracies),
            asr_percent=tail_mean(rates),
            asr_floor_percent=floor,
            excess_asr_percent=tail_mean(rates) - floor,
            peak_asr_percent=max(rates),
            final_ma_percent=accuracies[-1],
            final_asr_percent=rates[-1],
            attacker_weight_mean=sum(attackers) / len(attackers) if attackers else None,
            honest_excluded_percent=100 * sum(w == 0 for w in honest) / len(honest)
            if honest
            else None,
            detector_hits_percent=detector_hits(records, self.poisoned()),
            lifespan_rounds=lifespan(records, experiment.last_attack),
            rejected_clients=sum(len(r.report.get("rejected", [])) for r in records),
            seconds_per_round=fmean(map(seconds_in_all, records)),
            seconds_training=seconds(records, "training"),
            seconds_attack=seconds(records, "attack"),
            seconds_defense=seconds(records, "defense"),
            seconds_evaluation=seconds(records, "evaluation"),
            peak_memory_mb=pool.peak_memory_mb(),
        )
        text = json.dumps(dataclasses.asdict(summary), indent=2) + "\n"
        with _storing(self.folder):
            write_text(self.folder / SUMMARY, text)
            write_text(self.folder / REPORT, render(experiment, summary, records))
        return summary

    def poisoned(self) -> set[int]:
        """Return which examples of the defense set are poisoned, which no defense is told."""
        owned = self.server.defense_set
        places = () if owned is None else owned.provenance
        return {place for place, origin in enumerate(places) if origin == POISONED}

    def floor(self, pool: Pool) -> float:
        """Return the success rate, in percent, of fedavg when nobody attacks: same rounds, seed."""
        calm = self.experiment.without_attack()
        cached = cache_folder() / "floors" / f"{calm.key()}.json"
        if (self.experiment.attack, self.experiment.defense) == ("none", "fedavg"):
            floor = tail_mean(success_rates(self.records))
            _keep_floor(cached, floor, calm)
            return floor
        if (kept := _kept_floor(cached)) is not None:
            return kept
        federation = dataclasses.replace(self.federation, attack=None, loot=None, schedule=Never())
        rounds = simulate(
            federation,
            FedAvg(),
            Server(),
            pool,
            progress=begin(federation, FedAvg(), Server()),
            rounds=calm.rounds,
            evaluate_every=calm.evaluate_every,
        )
        floor = tail_mean(success_rates([record for record, _ in rounds]))
        _keep_floor(cached, floor, calm)
        return floor


@contextmanager
def _storing(folder: Path) -> Iterator[None]:
    """Turn an error of the disk into one that says how to go on."""
    try:
        yield
    except OSError as error:
        raise FileError(
            f"cannot write to {folder}: {error.strerror or error}; what is there is whole: "
            f"make room and go on with: datadefense resume {folder}"
        ) from error


def _kept_floor(path: Path) -> float | None:
    try:
        return float(json.loads(path.read_text(encoding="utf-8"))["asr_percent"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # absent or broken: it is measured


def _keep_floor(path: Path, floor: float, calm: Experiment) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps({"asr_percent": floor, "config": write_toml(calm)}) + "\n")
    except OSError as error:
        logger.warning("the floor is not kept: %s", error)


def start(
    experiment: Experiment,
    folder: Path,
    data_dir: Path | None = None,
    report: Report | None = None,
) -> Run:
    """Begin a run in a new folder; one that holds a run already is refused.

    ``report`` is told how far a warm start is, if one has to be trained first.
    """
    if (folder / CONFIG).exists():
        raise FileError(f"{folder} holds a run already: resume it, or choose another --out")
    defense = create(experiment.defense, experiment.defense_settings)
    defense.check_clients(experiment.clients_per_round)
    federation, server = assemble(experiment, data_dir, report)
    progress = begin(federation, defense, server)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ROUNDS).touch()
    write_text(folder / CONFIG, write_toml(experiment))
    return Run(experiment, folder, federation, defense, server, progress)


def resume(folder: Path, data_dir: Path | None = None) -> Run:
    """Go on with a run from its last good checkpoint, or from its beginning if it has none."""
    if not (folder / CONFIG).is_file():
        raise FileError(f"{folder} holds no run: there is no {CONFIG}")
    experiment = read_toml(folder / CONFIG)
    return restore(experiment, folder, *assemble(experiment, data_dir))


def restore(experiment: Experiment, folder: Path, federation: Federation, server: Server) -> Run:
    """Return the run in ``folder`` as its last good checkpoint has it.

    Rounds that were written after that checkpoint are dropped: they will be run again. A damaged
    checkpoint is put aside, so that it does not take the place of the good one before it.
    """
    defense = create(experiment.defense, experiment.defense_settings)
    progress = begin(federation, defense, server)
    for name in (CHECKPOINT, PREVIOUS):
        if (folder / name).exists():
            try:
                progress = load_state(folder / name, like=progress)
                break
            except StateError as error:
                logger.warning("%s; trying the checkpoint before it", error)
                (folder / name).replace(folder / f"damaged-{name}")
    records = [record for record in read_rounds(folder) if record.round <= progress.round]
    if [record.round for record in records] != list(range(1, progress.round + 1)):
        raise FileError(f"{folder / ROUNDS} lacks rounds that the checkpoint has seen")
    text = "".join(json.dumps(dataclasses.asdict(record)) + "\n" for record in records)
    write_text(folder / ROUNDS, text)
    return Run(experiment, folder, federation, defense, server, progress, records)


def read_rounds(folder: Path) -> list[RoundRecord]:
    """Read the rounds of a run; a last line that was cut off is left out."""
    records: list[RoundRecord] = []
    for line in (folder / ROUNDS).read_text(encoding="utf-8").splitlines():
        try:
            records.append(RoundRecord(**json.loads(line)))
        except (json.JSONDecodeError, TypeError):
            break
    return records
