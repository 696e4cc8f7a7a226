"""``datadefense aggregate``: one round for people who have files."""

import secrets
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from rich.table import Table

from datadefense.cli.plain_console import plain_console
from datadefense.core.buffers import BufferPolicy
from datadefense.core.defend import defend
from datadefense.core.fingerprint import Fingerprint
from datadefense.core.foreign import sanitize
from datadefense.core.gate import Admission, Gate, Sends
from datadefense.core.json_file import to_json
from datadefense.core.needs import Need
from datadefense.core.outcome_json import outcome_json
from datadefense.core.outcomes import ClientOutcome, Verdict
from datadefense.core.predictor import Layout
from datadefense.core.reasons import in_words
from datadefense.core.round import Aggregate, Round
from datadefense.core.round_files import (
    FileError,
    client_files,
    payload,
    read_submissions,
    read_tensors,
)
from datadefense.core.sent_kind import OTHER, Switches, check_kind
from datadefense.core.server import Server
from datadefense.core.settings import check_int as whole_number
from datadefense.core.settings import read_pairs
from datadefense.core.storage import load_state, save_state, save_tensors, write_text
from datadefense.defenses import create, settings_of
from datadefense.kernels.spill import Spill
from datadefense.kernels.sums import norms

ONLY_FILES = (
    "aggregate has only files: use dd.Guard in Python, the Flower strategy, or datadefense run"
)
"""What to do with a defense that needs more than updates."""
SWITCHES = Switches("--sends {}", "--no-check-sends")
"""How this command is told what files hold."""


@dataclass(frozen=True, slots=True)
class FileRound:
    """Where a round's parts lie, its number, and the seed of a defense that draws numbers."""

    global_model: Path
    updates: Path
    out: Path
    report: Path | None
    state: Path | None
    index: int
    seed: int | None

    def check(self) -> None:
        """Refuse places to which nothing can be written, before any work is done."""
        targets = [path for path in (self.out, self.report, self.state) if path is not None]
        for path in targets:
            if not path.absolute().parent.is_dir():
                raise FileError(f"{path.absolute().parent} is not a folder")
            if path.is_dir():
                raise FileError(f"{path} is a folder")
        if len({path.resolve() for path in targets}) < len(targets):
            raise FileError("--out, --report and --state must be different files")


@dataclass(frozen=True, slots=True)
class Intake:
    """How the files are read."""

    sends: str
    check_sends: bool
    buffers: str
    buffer_names: tuple[str, ...]
    num_examples: int | None
    max_examples: int
    max_clients: int
    spill: Spill | None = None


def aggregate_files(files: FileRound, name: str, settings: Sequence[str], intake: Intake) -> None:
    """Read, check, aggregate, print; write the results only if there are any.

    The report names the seed that the caller gave. One that was drawn is secret and is nowhere:
    who had it could take a defense's noise off the model again.
    """
    defense = create(name, read_pairs(settings))
    defense.check_needs(Need.CLIENT_IDENTITY, ONLY_FILES)
    whole_number("max_clients", intake.max_clients, 1)
    files.check()
    model = read_tensors(files.global_model)
    layout = Layout.of_state_dict(
        model.tensors, cast(BufferPolicy, intake.buffers), intake.buffer_names
    )
    params = layout.flatten({slot.name: model.tensors[slot.name] for slot in layout.slots})
    if not bool(params.isfinite().all()):
        raise FileError(f"{files.global_model} holds values that are not finite")
    gate = Gate(
        layout,
        max_examples=intake.max_examples,
        sends=cast(Sends, intake.sends),
        spill=intake.spill,
    )
    clients = client_files(files.updates)
    if not clients:
        raise FileError(f"{files.updates} holds no files")
    defense.check_clients(len(clients))
    seed = secrets.randbits(63) if files.seed is None else files.seed
    server = Server(seed=seed)
    state = defense.init(server, params)
    fingerprint = Fingerprint.of(defense, layout)
    if files.state is not None and files.state.exists():
        state = load_state(files.state, state, fingerprint)
    submissions = read_submissions(clients, model, layout, intake.num_examples)
    whole = sum(client.size >= payload(layout) for client in clients if client.same_as is None)
    most = min(whole, intake.max_clients)
    admission = gate.admit(files.index, params, submissions, expected=most)
    odd = check_kind(admission, gate.sends, SWITCHES) if intake.check_sends else 0
    result = defend(defense, state, admission, params, server)

    outcomes = with_norms(result.outcomes, admission.round)
    _print_clients(outcomes, result)
    for line in _notes(odd, admission, gate.sends):
        plain_console().print(f"note: {line}", highlight=False, soft_wrap=True)
    if "held" in result.report:
        message = f"error: {result.report['held']}: nothing was written"
        plain_console(stderr=True).print(message, style="bold red", highlight=False)
        sys.exit(2)

    content = {
        "defense": name,
        "settings": settings_of(defense),
        "round": files.index,
        "seed": files.seed,
        "clients": [outcome_json(outcome) for outcome in outcomes],
        "report": dict(result.report),
    }
    text = to_json(content, indent=2) + "\n"
    not_aggregated = {key: model.tensors[key] for key in layout.kept}
    new_model = not_aggregated | layout.unflatten(result.params)
    save_tensors(files.out, {key: new_model[key] for key in model.tensors}, model.metadata)
    if files.state is not None:
        save_state(files.state, result.state, fingerprint)
    if files.report is not None:
        write_text(files.report, text)
    plain_console().print(f"wrote {files.out}", highlight=False, soft_wrap=True)


def _notes(odd: int, admission: Admission, sends: Sends) -> Iterator[str]:
    """Yield what is to be known of the round beside its table."""
    if odd and admission.round is not None:
        yield f"{odd} of {admission.round.num_clients} files look like {OTHER[sends]}"
    if line := admission.layout.about_buffers():
        yield line


def with_norms(outcomes: Sequence[ClientOutcome], round: Round | None) -> tuple[ClientOutcome, ...]:
    """Return the outcomes with the norm of each admitted update first in its evidence."""
    if round is None:
        return tuple(outcomes)
    lengths = dict(zip(round.client_ids, norms(round.updates).tolist(), strict=True))
    return tuple(
        outcome
        if outcome.verdict is Verdict.REJECTED
        else replace(outcome, evidence={"norm": lengths[outcome.client]} | dict(outcome.evidence))
        for outcome in outcomes
    )


def _print_clients(outcomes: Sequence[ClientOutcome], result: Aggregate[Any]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("client")
    for column in ("examples", "norm", "weight"):
        table.add_column(column, justify="right")
    table.add_column("verdict")
    table.add_column("reason")
    for outcome in outcomes:
        lost = outcome.verdict in (Verdict.REJECTED, Verdict.EXCLUDED)
        table.add_row(
            sanitize(str(outcome.client), 60),
            "" if outcome.num_examples is None else str(outcome.num_examples),
            f"{outcome.evidence['norm']:.4g}" if "norm" in outcome.evidence else "",
            "" if outcome.weight is None else f"{outcome.weight:.4g}",
            outcome.verdict,
            "" if outcome.reason is None else in_words(outcome.reason),
            style="red" if lost else "",
        )
    console = plain_console()
    console.print(table)
    if "fallback" in result.report:
        console.print(f"note: {result.report['fallback']}", style="yellow", highlight=False)
