"""The server of an experiment on Flower: our run, with Flower's nodes as its workers."""

import logging
from pathlib import Path
from tempfile import mkdtemp

import torch
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from datadefense.flower.engine.grid_pool import GridPool
from datadefense.flower.engine.progress import round_log_line
from datadefense.report.page import write_run_page
from datadefense.runs.config import parse_toml
from datadefense.runs.files import CONFIG
from datadefense.runs.run import resume, start

logger = logging.getLogger("flwr.datadefense")
"""A child of Flower's own logger, so that it is shown where Flower's words are shown."""
server_app = ServerApp()


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    """Carry the experiment out, from where its folder has it if it was begun."""
    torch.set_num_threads(1)
    config = str(context.run_config["experiment"])
    experiment = parse_toml(config)
    folder = Path(str(context.run_config["out"]) or mkdtemp(prefix="datadefense-"))
    data = str(context.run_config["data"])
    place = Path(data) if data else None
    begun = (folder / CONFIG).exists()
    with resume(folder, place) if begun else start(experiment, folder, place) as run:
        pool = GridPool(run.federation, grid, config)
        for record in run.rounds(pool):
            logger.info("%s", round_log_line(record, experiment.rounds))
        run.finish(pool, write_run_page)
    logger.info("wrote %s", folder)
