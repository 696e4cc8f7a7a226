"""``datadefense aggregate``: one round for people who have files."""

import dataclasses
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from torch import Tensor

from datadefense.defended_round import defend
from datadefense.defenses import create
from datadefense.files import FileError, client_files, read_submissions, read_tensors
from datadefense.gate import Admission, Gate, Sends
from datadefense.kernels.sums import norms
from datadefense.params import BufferPolicy, Layout
from datadefense.round import Aggregate
from datadefense.server import Server
from datadefense.settings import read_pairs
from datadefense.storage import load_state, save_state, save_tensors, write_text
from datadefense.verdicts import verdicts


@dataclass(frozen=True, slots=True)
class FileRound:
    """Where a round's parts lie, and its number."""

    global_model: Path
    updates: Path
    out: Path
    report: Path | None
    state: Path | None
    index: int


def aggregate_files(
    files: FileRound,
    name: str,
    settings: Sequence[str],
    *,
    sends: str,
    buffers: str,
    num_examples: int | None,
    max_examples: int,
    seed: int,
) -> None:
    """Read, check, aggregate, print; write the results only if there are any."""
    defense = create(name, read_pairs(settings))
    for path in (files.out, files.report, files.state):
        if path is not None and not path.absolute().parent.is_dir():
            raise FileError(f"{path.absolute().parent} is not a folder")
    model, metadata = read_tensors(files.global_model)
    layout = Layout.of_state_dict(model, cast(BufferPolicy, buffers))
    params = layout.flatten({slot.name: model[slot.name] for slot in layout.slots})
    if not bool(params.isfinite().all()):
        raise FileError(f"{files.global_model} holds values that are not finite")
    gate = Gate(layout, max_examples=max_examples, sends=cast(Sends, sends))
    clients = client_files(files.updates)
    if not clients:
        raise FileError(f"{files.updates} holds no files")
    defense.check_clients(len(clients))
    server = Server(seed=seed)
    state = defense.init(server, params)
    if files.state is not None and files.state.exists():
        state = load_state(files.state, like=state)
    submissions = read_submissions(files.updates, num_examples)
    admission = gate.admit(files.index, params, submissions, expected=len(clients))
    result = defend(defense, state, admission, params, server)

    rows = client_rows(admission, result)
    _print_clients(rows, result)
    if "held" in result.report:
        message = f"error: {result.report['held']}: nothing was written"
        Console(stderr=True).print(message, style="bold red", highlight=False)
        sys.exit(1)

    new_model = {name: model[name] for name in layout.kept} | layout.unflatten(result.params)
    save_tensors(files.out, {key: new_model[key] for key in model}, metadata)
    if files.state is not None:
        save_state(files.state, result.state)
    if files.report is not None:
        content = {
            "defense": name,
            "settings": dataclasses.asdict(cast(Any, defense)),
            "round": files.index,
            "clients": rows,
            "report": dict(result.report),
        }
        write_text(files.report, json.dumps(content, indent=2) + "\n")
    Console().print(f"wrote {files.out}", highlight=False, soft_wrap=True, markup=False)


def client_rows(admission: Admission, result: Aggregate[Any]) -> list[dict[str, Any]]:
    """Return one record a client, the admitted first: what the table and the report show."""
    rows: list[dict[str, Any]] = []
    if (round := admission.round) is not None:
        held = "held" in result.report
        words = ["not used"] * round.num_clients if held else verdicts(result, round)
        lengths = norms(round.updates)
        for j, client in enumerate(round.client_ids):
            rows.append(
                {
                    "client": client,
                    "num_examples": int(round.num_examples[j]),
                    "norm": float(lengths[j]),
                    "weight": _at(result.weights, j),
                    "verdict": words[j],
                    "evidence": {key: _at(values, j) for key, values in result.evidence.items()},
                }
            )
    return rows + [
        {"client": rejection.client_id, "verdict": f"rejected: {rejection.reason}"}
        for rejection in admission.rejected
    ]


def _at(values: Tensor | None, client: int) -> float | None:
    return None if values is None else float(values[client])


def _print_clients(rows: Sequence[dict[str, Any]], result: Aggregate[Any]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("client")
    for column in ("examples", "norm", "weight"):
        table.add_column(column, justify="right")
    table.add_column("verdict")
    for row in rows:
        weight = row.get("weight")
        table.add_row(
            escape(str(row["client"])),
            str(row.get("num_examples", "")),
            f"{row['norm']:.4g}" if "norm" in row else "",
            "" if weight is None else f"{weight:.4g}",
            escape(row["verdict"]),
            style="red" if row["verdict"].startswith(("rejected", "excluded")) else "",
        )
    console = Console()
    console.print(table)
    if "fallback" in result.report:
        console.print(f"note: {result.report['fallback']}", style="yellow", highlight=False)
