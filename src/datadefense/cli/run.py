"""``datadefense run`` and ``resume``: live progress, a clean stop on Ctrl-C, a table at the end."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from datadefense.cli.experiment_options import ExperimentOptions
from datadefense.cli.plain_console import plain_console
from datadefense.cli.sparse_lines import SparseLines
from datadefense.cli.trackers import check, tracked
from datadefense.cli.warnings_shown import warnings_shown
from datadefense.core.settings import SettingsError, check_int
from datadefense.data.cache import cache_folder
from datadefense.report.page import write_run_page
from datadefense.runs.build import load_data
from datadefense.runs.config import Experiment
from datadefense.runs.configure import configure
from datadefense.runs.files import check_new
from datadefense.runs.metrics import scores_in_words
from datadefense.runs.run import Run, resume, start
from datadefense.runs.summary import Summary, seconds_in_all
from datadefense.runs.warm_start import Report, warm_start
from datadefense.simulation.pool import Pool
from datadefense.simulation.rounds import RoundRecord


def run_experiment(
    options: ExperimentOptions,
    *,
    out: Path | None,
    data: Path | None,
    workers: int | None,
    device: str,
    log: Sequence[str] = (),
) -> None:
    """Begin a run and see it through; ``log`` names trackers that are told of every round."""
    _check_means(workers, device, log)
    if out is not None:
        check_new(out)
    configured = options.experiment()
    folder = out or new_folder(configured)
    with warnings_shown("datadefense.runs", "datadefense.defense_sets"):
        with _warm_start_display(configured) as report:
            run = start(configured, folder, data, report)
        with tracked(log, configured, folder) as tell:
            see_through(run, workers, device, tell)


def new_folder(configured: Experiment) -> Path:
    """Return where a run goes that was given no place: named after what it is and when."""
    parts = [configured.name_of(part) for part in ("task", "attack", "defense")]
    name = "-".join([*parts, str(configured.seed)]).replace(":", ".").replace("/", ".")
    return Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"


def resume_experiment(
    folder: Path,
    data: Path | None,
    workers: int | None,
    device: str,
    log: Sequence[str] = (),
) -> None:
    """Pick a run up where its last checkpoint left it and see it through."""
    _check_means(workers, device, log)
    with warnings_shown("datadefense.runs", "datadefense.defense_sets"):
        run = resume(folder, data)
        with tracked(log, run.experiment, folder) as tell:
            see_through(run, workers, device, tell)


def warm_up(task: str, scale: str, changes: Mapping[str, str], data: Path | None) -> None:
    """Train a task's warm start unless it is there, showing how far it is."""
    torch.set_num_threads(1)
    configured = configure(task, scale, changes)
    loaded = load_data(configured, data)
    with _warm_start_display(configured) as report:
        warm_start(configured.warm, loaded, cache_folder(), report)
    plain_console().print(
        f"the first model of {task} is kept in {cache_folder()}",
        highlight=False,
        soft_wrap=True,
    )


def _check_means(workers: int | None, device: str, log: Sequence[str]) -> None:
    """Refuse what a run could not compute with or report to, before it begins; use one thread."""
    torch.set_num_threads(1)
    if workers is not None:
        check_int("workers", workers, 0)
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise SettingsError(
            f"device must be one that torch has here, got {device!r}: {reason}"
        ) from error
    check(log)


@contextmanager
def _warm_start_display(configured: Experiment) -> Iterator[Report]:
    """Show how far a warm start is; nothing is shown until one is under way."""
    console = plain_console()
    wanted = configured.warm.accuracy_percent
    bar = Progress(
        TextColumn("warm start"),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    lines = SparseLines(lambda text: console.print(f"warm start  {text}", highlight=False))
    total = float(configured.warm.epochs) if wanted is None else wanted
    task = bar.add_task("", total=total)

    def show(epochs: float, accuracy: float) -> None:
        of = "" if wanted is None else f" of {wanted:.1f}"
        text = f"{accuracy:.1f}{of} % after {epochs:.2f} epochs"
        bar.start()
        done = epochs if wanted is None else accuracy
        bar.update(task, completed=min(done, total), description=text)
        if not console.is_terminal:
            lines.show(text)

    try:
        yield show
    finally:
        bar.stop()
        lines.close()


def see_through(
    run: Run,
    workers: int | None,
    device: str,
    tell: Callable[[RoundRecord], None] = lambda _: None,
) -> Summary:
    """Run what is left, showing how far it is, and close the run.

    Ctrl-C stops after the round and exits with 130; SIGTERM ends the workers at once and exits with
    143. Both say how to go on.
    """
    console = plain_console()
    number = (os.cpu_count() or 1) if workers is None else workers
    command = f"go on with: datadefense resume {run.folder}"
    with run, _ended_by_sigterm(console, command), Pool(run.federation, number, device) as pool:
        with stop_on_interrupt() as stopped, _Display(console, run) as display:
            for record in run.rounds(pool):
                display.show(record)
                tell(record)
                if stopped():
                    break
        if not run.done:
            run.save()
            _say(console, f"stopped after round {run.progress.round}; {command}")
            sys.exit(130)
        with console.status("measuring the floor: the same rounds without an attack ..."):
            summary = run.finish(pool, write_run_page)
    print_summary(console, summary, run.folder)
    return summary


@contextmanager
def _ended_by_sigterm(console: Console, command: str) -> Iterator[None]:
    """Turn SIGTERM into an exit that leaves all there is in order, and say how to go on."""
    flag = _Flag()

    def handle(_number: int, _frame: FrameType | None) -> None:
        if not flag.raised:
            flag.raised = True
            sys.exit(143)

    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    except SystemExit:
        if flag.raised:
            _say(console, f"ended by SIGTERM; {command}")
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)


@contextmanager
def stop_on_interrupt() -> Iterator["_Flag"]:
    """Turn the first Ctrl-C into a wish to stop after the round; the second stops at once."""
    flag = _Flag()

    def handle(_number: int, _frame: FrameType | None) -> None:
        flag.raised = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield flag
    finally:
        signal.signal(signal.SIGINT, before)


class _Flag:
    raised = False

    def __call__(self) -> bool:
        return self.raised


class _Display:
    """A progress bar on a terminal, a line a round elsewhere."""

    def __init__(self, console: Console, run: Run) -> None:
        self.console, self.run, self.weakened = console, run, ""
        self.bar = Progress(
            TextColumn("round {task.completed}/{task.total}"),
            BarColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self.task = self.bar.add_task("", total=run.experiment.rounds, completed=run.progress.round)

    def __enter__(self) -> "_Display":
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def show(self, record: RoundRecord) -> None:
        """Show one round, and once what the defense lacks."""
        said = record.report.get("weakened")
        if said and said != self.weakened:
            self.weakened = said
            self.console.print(
                f"warning: round {record.round}: {said}", style="yellow", highlight=False
            )
        words = [*scores_in_words(record), f"{seconds_in_all(record):.2f} s"]
        if record.attackers:
            words.append("attacked")
        text = "  ".join(words)
        if self.console.is_terminal:
            self.bar.update(self.task, completed=record.round, description=text)
        else:
            total = self.run.experiment.rounds
            self.console.print(f"round {record.round}/{total}  {text}", highlight=False)


def print_summary(console: Console, summary: Summary, folder: Path) -> None:
    """Say in one line how a run ended, and where it is."""
    weight = summary.attacker_weight_mean
    excluded, weakened = summary.honest_excluded_percent, summary.weakened_rounds
    console.print(
        f"{summary.setup}, {summary.attack} against {summary.defense}: "
        f"MA {summary.ma_percent:.1f} %, ASR {summary.asr_percent:.1f} % "
        f"(floor {summary.asr_floor_percent:.1f} %, excess {summary.excess_asr_percent:.1f} %, "
        f"peak {summary.peak_asr_percent:.1f} %)"
        + ("" if weight is None else f", attacker's weight {weight:.3f}")
        + ("" if excluded is None else f", honest excluded {excluded:.0f} %")
        + (f", weakened in {weakened} of {summary.rounds} rounds" if weakened else ""),
        highlight=False,
        soft_wrap=True,
    )
    console.print(f"wrote {folder}", highlight=False, soft_wrap=True)
