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
def warnings_shown(*names: str) -> Iterator[None]:
    """Show what the loggers below ``names`` warn of; without a handler nobody would see it."""
    handler, loggers = _Lines(logging.WARNING), [logging.getLogger(name) for name in names]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
