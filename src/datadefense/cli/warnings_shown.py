"""Warnings that the library logs, as lines on standard error."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from datadefense.cli.plain_console import plain_console


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Print one line, above a progress bar if there is one."""
        text = f"warning: {record.getMessage()}"
        plain_console(stderr=True).print(text, highlight=False, soft_wrap=True)


@contextmanager
def warnings_shown(name: str) -> Iterator[None]:
    """Show what the loggers below ``name`` warn of; without a handler nobody would see it."""
    handler, logger = _Lines(logging.WARNING), logging.getLogger(name)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
