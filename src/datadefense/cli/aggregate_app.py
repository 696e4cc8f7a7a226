"""The options of ``datadefense aggregate``."""

from pathlib import Path
from typing import Annotated

import typer

from datadefense.cli.options import Changes


def aggregate(
    global_model: Annotated[
        Path, typer.Option("--global", help="The global model, a safetensors file.")
    ],
    updates: Annotated[
        Path,
        typer.Option(help="Folder with one safetensors file a client (metadata num_examples)."),
    ],
    defense: Annotated[
        str, typer.Option(help="Name of a defense; see `datadefense list defenses`.")
    ],
    out: Annotated[Path, typer.Option(help="Where the new global model goes.")],
    set_: Changes = None,
    report: Annotated[Path | None, typer.Option(help="Where a JSON report goes.")] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="What the defense remembers: read if it is there, then written."),
    ] = None,
    sends: Annotated[
        str,
        typer.Option(help="What the files hold: whole models, or updates (model less global)."),
    ] = "models",
    check_sends: Annotated[
        bool, typer.Option(help="Refuse files that do not look like what --sends says.")
    ] = True,
    buffers: Annotated[
        str, typer.Option(help="BatchNorm statistics and the like: aggregate, keep or refuse.")
    ] = "aggregate",
    buffer_name: Annotated[
        list[str] | None,
        typer.Option(help="A tensor that is a buffer but is not named like BatchNorm's."),
    ] = None,
    num_examples: Annotated[
        int | None,
        typer.Option(help="Number of examples for files without one (default: reject them)."),
    ] = None,
    max_examples: Annotated[
        int, typer.Option(help="Largest number of examples that a client may claim.")
    ] = 1_000_000,
    max_clients: Annotated[
        int, typer.Option(help="Largest number of clients in a round.")
    ] = 10_000,
    round_index: Annotated[int, typer.Option("--round", help="Number of the round.")] = 1,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of defenses that draw numbers (default: unpredictable)."),
    ] = None,
    spill: Annotated[
        Path | None,
        typer.Option(help="Folder on a disk for updates that are too large for memory."),
    ] = None,
    spill_above: Annotated[
        int, typer.Option(help="Most bytes of updates that stay in memory.")
    ] = 1_000_000_000,
) -> None:
    """Aggregate a folder of client models (or updates) with a defense.

    A --state of another run (other defense, settings or tensors) is refused.
    """
    from datadefense.cli.aggregate import FileRound, Intake, aggregate_files
    from datadefense.core.settings import check_int
    from datadefense.kernels.spill import Spill

    check_int("spill_above", spill_above, 0)
    place = None if spill is None else Spill(spill, spill_above)
    names = tuple(buffer_name or ())
    intake = Intake(
        sends, check_sends, buffers, names, num_examples, max_examples, max_clients, place
    )
    aggregate_files(
        FileRound(global_model, updates, out, report, state, round_index, seed),
        defense,
        set_ or [],
        intake,
    )
