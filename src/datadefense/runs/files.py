"""The folder of a run: what its files are called, who may write there, its rounds read back."""

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from datadefense.core.json_file import read_lines
from datadefense.core.round_files import FileError
from datadefense.core.storage import locked
from datadefense.defense_sets.preview import read_gallery
from datadefense.runs.round_lines import read_round
from datadefense.simulation.rounds import RoundRecord

CONFIG, ROUNDS, SUMMARY = "config.toml", "rounds.jsonl", "summary.json"
FLOOR, GALLERY, REPORT = "floor.json", "gallery.json", "report.html"
CODE = "code.json"
CHECKPOINT, PREVIOUS = "checkpoint.safetensors", "checkpoint.previous.safetensors"


def hold(folder: Path) -> ExitStack:
    """Take a run's folder for this process alone, until the answer is closed or the process ends.

    A folder that another process is at raises `FileError`, before anything there is read or
    written: both would write its rounds.
    """
    with ExitStack() as held:
        try:
            held.enter_context(locked(folder, wait=False))
        except (BlockingIOError, FileNotFoundError) as error:
            raise FileError(f"another process is working on the run in {folder}") from error
        return held.pop_all()


def hold_new(folder: Path) -> ExitStack:
    """Take a folder for a new run, made if it is missing; `hold` says for how long.

    One that holds a run already raises `FileError`. A folder that was made here and is still empty
    when it is let go of is removed: no run was begun in it.
    """
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    with hold(folder) as held:
        held.callback(_remove_empty, made)
        check_new(folder)
        return held.pop_all()


def check_new(folder: Path) -> None:
    """Raise `FileError` if a folder holds a run already."""
    if (folder / CONFIG).exists():
        raise FileError(f"{folder} holds a run already: resume it, or choose another --out")


def _remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders, the innermost first, up to one that is not empty."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def read_rounds(folder: Path) -> list[RoundRecord]:
    """Return the rounds of a run; `rounds_so_far` says more."""
    return rounds_so_far(folder)[0]


def rounds_so_far(folder: Path) -> tuple[list[RoundRecord], bool]:
    """Return the rounds of a run, and whether a last line was cut off, which is then left out.

    Any other line that is not a round raises `FileError`.
    """
    ids = [example.id for example in read_gallery(folder / GALLERY) or ()]
    build = partial(read_round, examples=ids)
    return read_lines(folder / ROUNDS, "a round", build, take_unended=True)
