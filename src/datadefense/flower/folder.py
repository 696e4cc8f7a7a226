"""The folder of a strategy: one writer at a time, the state of its run, and the audit trail."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from datadefense.core.fingerprint import Fingerprint
from datadefense.core.round_files import FileError
from datadefense.core.run_state import RunState
from datadefense.core.storage import load_state, locked, save_state
from datadefense.flower.audit import append_line, settle_trail

STATE, TRAIL, LOCK = "state.safetensors", "audit.jsonl", ".lock"
"""Files of a strategy's folder."""


@contextmanager
def one_writer(folder: Path) -> Iterator[None]:
    """Hold the folder, which is made where it is missing; where another has it, refuse.

    The lock ends with the process, however that ends. Its file stays.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / LOCK
    lock.touch()
    with ExitStack() as held:
        try:
            held.enter_context(locked(lock, wait=False))
        except BlockingIOError as error:
            raise FileError(
                f"another strategy is at work in {folder}: end it first, or choose another folder"
            ) from error
        yield


def stored_or_new(folder: Path, like: RunState, fingerprint: Fingerprint) -> RunState:
    """Return the state that is there, or ``like`` where there is none; fit the trail to it.

    The state of another run is refused before anything is written.
    """
    begun = (folder / STATE).exists()
    state = load_state(folder / STATE, like, fingerprint) if begun else like
    settle_trail(folder / TRAIL, state.round, begun=begun)
    return state


def store_round(
    folder: Path, state: RunState, fingerprint: Fingerprint, line: dict[str, Any]
) -> None:
    """Write the trail, then the state: a round is done when its state is there."""
    append_line(folder / TRAIL, line)
    save_state(folder / STATE, state, fingerprint)
