"""``datadefense run --engine flower``: the same experiment, its clients trained by Flower."""

import importlib.util
import os
from functools import partial
from pathlib import Path

from datadefense.cli.experiment_options import ExperimentOptions
from datadefense.cli.plain_console import plain_console
from datadefense.cli.run import new_folder, print_summary
from datadefense.core.json_file import built, read_json
from datadefense.core.settings import SettingsError
from datadefense.data.folder import data_folder
from datadefense.runs.config import pinned
from datadefense.runs.files import SUMMARY, check_new
from datadefense.runs.summary import Summary


def run_on_flower(
    options: ExperimentOptions,
    *,
    out: Path | None,
    data: Path | None,
    workers: int | None,
    superlink: str | None,
    root_certificates: Path | None,
) -> None:
    """Hand an experiment to Flower and show its rounds; what cannot work is refused before."""
    needed = ("flwr",) if superlink else ("flwr", "ray")
    if missing := [name for name in needed if importlib.util.find_spec(name) is None]:
        raise SettingsError(
            f"engine flower needs {' and '.join(missing)}: "
            "pip install 'datadefense[flower-simulation]'"
        )
    from datadefense.flower.engine.launch import Deployment, run_app  # noqa: PLC0415 - an extra
    from datadefense.flower.engine.progress import round_in_log_line  # noqa: PLC0415 - an extra

    if out is not None:
        check_new(out)
    configured = pinned(options.experiment())
    configured.defense.check_clients(configured.federation.clients_per_round)
    folder = out or new_folder(configured)
    place = data_folder(data) if superlink is None else data  # there it is a folder of theirs
    deployment = None if superlink is None else Deployment(superlink, root_certificates)
    processes = (os.cpu_count() or 1) if workers is None else workers
    console = plain_console()
    for line in run_app(configured, folder, place, workers=processes, deployment=deployment):
        if (round_text := round_in_log_line(line)) is not None:
            console.print(round_text, highlight=False)
    if (folder / SUMMARY).exists():
        summary = read_json(folder / SUMMARY, partial(built, Summary))
        print_summary(console, summary, folder)
    else:
        console.print(f"wrote {folder.absolute()} on the machine of the SuperLink", highlight=False)
