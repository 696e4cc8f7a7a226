"""Preload: the process that workers are forked from imports torch while the main process does."""

from multiprocessing import forkserver


def prepare_workers(*modules: str) -> None:
    """Start that server now, with ``modules`` and what a pool's workers need imported.

    A pool that is made later finds it running. This file is light: to be called before torch is
    imported here.
    """
    forkserver.set_forkserver_preload([*modules, "datadefense.simulation.pool"])
    forkserver.ensure_running()
