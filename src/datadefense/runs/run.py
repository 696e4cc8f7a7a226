"""A run: an experiment carried out, with everything about it in one folder.

``config.toml`` is the experiment; ``rounds.jsonl`` has one line a round; the checkpoint holds all
that is needed to end with the same bits as a run that was never interrupted; ``gallery.json`` is
what the defense set looks like, if the defense scores its examples; ``code.json`` is what the
user's own plug-ins were, if there are any; ``summary.json``, ``floor.json`` and ``report.html`` are
written at the end.
"""

import dataclasses
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datadefense.core.defense import Defense
from datadefense.core.json_file import to_json
from datadefense.core.round_files import FileError
from datadefense.core.server import Server
from datadefense.core.storage import StateError, load_state, save_state, write_text
from datadefense.defense_sets.preview import gallery_of, write_gallery
from datadefense.defenses import FedAvg
from datadefense.runs.baseline import Floor, cached_floor, read_floor, write_floor
from datadefense.runs.build import assemble, with_choice
from datadefense.runs.config import Experiment, pinned, read_toml, write_toml
from datadefense.runs.files import (
    CHECKPOINT,
    CONFIG,
    FLOOR,
    GALLERY,
    PREVIOUS,
    ROUNDS,
    SUMMARY,
    hold,
    hold_new,
    read_rounds,
)
from datadefense.runs.ground_truth import poisoned_ids
from datadefense.runs.own_code import warn_of_changes, write_digests
from datadefense.runs.round_lines import round_line
from datadefense.runs.summary import Summary, success_rates, summarise, tail_mean
from datadefense.runs.warm_start import Report
from datadefense.schedules.never import Never
from datadefense.simulation.executor import Workers
from datadefense.simulation.federation import Federation
from datadefense.simulation.rounds import Progress, RoundRecord, begin, simulate

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Run:
    """One run: build it with `start` or `resume`, then iterate over ``rounds``, then ``finish``.

    Its folder is held against all other processes from before anything there is read until the run
    is closed; use it as a context manager.
    """

    experiment: Experiment
    folder: Path
    federation: Federation
    defense: Defense[Any]
    server: Server
    progress: Progress[Any]
    held: ExitStack
    records: list[RoundRecord] = field(default_factory=list)
    closed: bool = False

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder: another process may have the run now, and this one writes no more.

        A run that nothing refers to any more is closed too.
        """
        self.closed = True
        self.held.close()

    def rounds(self, pool: Workers) -> Iterator[RoundRecord]:
        """Run what is left, storing each round before it is yielded."""
        self._check_open()
        experiment = self.experiment
        for record, progress in simulate(
            self.federation,
            self.defense,
            self.server,
            pool,
            progress=self.progress,
            rounds=experiment.rounds,
            evaluate_every=experiment.evaluation.evaluate_every,
        ):
            self.records.append(record)
            self.progress = progress
            if record.detector is not None:
                self._keep_gallery()
            with self._storing(), (self.folder / ROUNDS).open("a", encoding="utf-8") as lines:
                lines.write(round_line(record))
                lines.flush()
                os.fsync(lines.fileno())
            if record.round % experiment.evaluation.checkpoint_every == 0 or self.done:
                self.save()
            yield record

    @property
    def done(self) -> bool:
        """Whether all rounds have been run."""
        return self.progress.round >= self.experiment.rounds

    def save(self) -> None:
        """Write a checkpoint; the one before it stays, in case this one is damaged later."""
        current = self.folder / CHECKPOINT
        with self._storing():
            if current.exists():
                current.replace(self.folder / PREVIOUS)
            save_state(current, self.progress)

    def finish(self, pool: Workers, page: Callable[[Path], None] | None = None) -> Summary:
        """Measure the floor (or take it from the cache) and write the summary.

        ``page`` then writes the page of the finished folder, where one is wanted.
        """
        floor = self.floor(pool)
        summary = summarise(
            self.experiment,
            self.records,
            floor,
            self.poisoned(),
            pool.peak_memory_mb(),
        )
        text = to_json(dataclasses.asdict(summary), indent=2) + "\n"
        with self._storing():
            write_floor(self.folder / FLOOR, floor, self.experiment)
            write_text(self.folder / SUMMARY, text)
            if page is not None:
                page(self.folder)
        return summary

    def _check_open(self) -> None:
        if self.closed:
            raise FileError(f"the run in {self.folder} is closed here: resume it to go on")

    @contextmanager
    def _storing(self) -> Iterator[None]:
        """Turn an error of the disk into one that says how to go on."""
        self._check_open()
        try:
            yield
        except OSError as error:
            raise FileError(
                f"cannot write to {self.folder}: {error.strerror or error}; what is there is "
                f"whole: make room and go on with: datadefense resume {self.folder}"
            ) from error

    def _keep_gallery(self) -> None:
        """Write what the defense set looks like, once."""
        path, defense_set = self.folder / GALLERY, self.server.defense_set
        if defense_set is not None and not path.exists():
            with self._storing():
                write_gallery(path, gallery_of(defense_set, self.federation.vocabulary))

    def poisoned(self) -> frozenset[str]:
        """Return which examples of the defense set are poisoned, which no defense is told."""
        defense_set = self.server.defense_set
        if defense_set is None:
            return frozenset()
        return poisoned_ids(zip(defense_set.ids, defense_set.provenance, strict=True))

    def floor(self, pool: Workers) -> Floor:
        """Return what fedavg scores without attack: same rounds, same seed."""
        without_attack, cached = self.experiment.without_attack(), cached_floor(self.experiment)
        if not self.experiment.attacked:
            return self._store_baseline(cached, self.records)
        if (baseline := read_floor(cached)) is not None:
            return baseline
        federation = dataclasses.replace(
            self.federation, attack=None, attacker_data=None, schedule=Never()
        )
        rounds = simulate(
            federation,
            FedAvg(),
            Server(),
            pool,
            progress=begin(federation, FedAvg(), Server()),
            rounds=without_attack.rounds,
            evaluate_every=without_attack.evaluation.evaluate_every,
        )
        return self._store_baseline(cached, [record for record, _ in rounds])

    def _store_baseline(self, path: Path, records: list[RoundRecord]) -> Floor:
        """Return the baseline, measured in rounds without attack; store it if the disk lets us."""
        accuracies = [r.ma_percent for r in records if r.ma_percent is not None]
        floor = Floor(tail_mean(success_rates(records)), tail_mean(accuracies))
        try:
            write_floor(path, floor, self.experiment)
        except OSError as error:
            logger.warning("the baseline is not stored: %s", error)
        return floor


def start(
    experiment: Experiment,
    folder: Path,
    data_dir: Path | None = None,
    report: Report | None = None,
) -> Run:
    """Begin a run in a new folder; one that holds a run already, or is being begun, is refused.

    ``report`` is told how far a warm start is, if one has to be trained first.
    """
    defense = experiment.defense
    defense.check_clients(experiment.federation.clients_per_round)
    experiment = pinned(experiment)
    with hold_new(folder) as held:
        federation, server = assemble(experiment, data_dir, report)
        experiment = with_choice(experiment, federation, server)
        progress = begin(federation, defense, server)
        (folder / ROUNDS).touch()
        write_digests(folder, experiment)
        write_text(folder / CONFIG, write_toml(experiment))
        return Run(experiment, folder, federation, defense, server, progress, held.pop_all())


def resume(folder: Path, data_dir: Path | None = None) -> Run:
    """Go on with a run from its last good checkpoint, or from its beginning if it has none."""
    if not (folder / CONFIG).is_file():
        raise FileError(f"{folder} holds no run: there is no {CONFIG}")
    with hold(folder) as held:
        experiment = pinned(read_toml(folder / CONFIG))
        return _restored(experiment, folder, *assemble(experiment, data_dir), held)


def restore(experiment: Experiment, folder: Path, federation: Federation, server: Server) -> Run:
    """Return the run in ``folder`` as its last good checkpoint has it.

    Rounds that were written after that checkpoint are dropped: they will be run again. A damaged
    checkpoint is put aside, so that it does not take the place of the good one before it.
    """
    with hold(folder) as held:
        return _restored(experiment, folder, federation, server, held)


def _restored(
    experiment: Experiment, folder: Path, federation: Federation, server: Server, held: ExitStack
) -> Run:
    """Do what `restore` says in a folder that is held; the run takes over ``held``."""
    defense = experiment.defense
    warn_of_changes(folder, experiment)
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
    write_text(folder / ROUNDS, "".join(map(round_line, records)))
    return Run(experiment, folder, federation, defense, server, progress, held.pop_all(), records)
