"""What goes wrong with data: one error, whose message is one printable line."""

from collections.abc import Iterator
from contextlib import contextmanager

from datadefense.core.errors import DataDefenseError

HEAD, TAIL = 700, 300
"""Characters of a message that are shown: where it happened, and what was wrong."""


class DataError(DataDefenseError, ValueError):
    r"""A data set that is missing, incomplete, broken or not what it should be.

    Messages tell of foreign things: names, ids, columns, what a decoder said. So the message is
    made fit to be shown here, once for all: one line, nothing that a terminal obeys, not too long.

    >>> str(DataError("bad id '\x1b[2J\n'"))
    "bad id '?[2J?'"
    """

    def __init__(self, message: str) -> None:
        super().__init__(_shown(message))


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Make a DataError that begins with ``what`` of anything that goes wrong inside.

    Decoders of foreign bytes raise almost anything.
    """
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"{what}: {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its kind if it has none."""
    start = str(error)[: 4 * (HEAD + TAIL)]
    return next(iter(start.strip().splitlines()), type(error).__name__)


def _shown(text: str) -> str:
    if len(text) > HEAD + TAIL:
        text = f"{text[:HEAD]} ... {text[-TAIL:]}"
    return "".join(c if c.isprintable() else "?" for c in text)
