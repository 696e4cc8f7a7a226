"""The content of a file from elsewhere: opened once, and never more read than is allowed."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from datadefense.data.errors import DataError, refusing


@contextmanager
def opened(path: Path, most_bytes: int) -> Iterator[BinaryIO]:
    """Open a file of at most ``most_bytes``; a pipe, a device or a folder is not waited for.

    The size is that of the file that was opened, not of what has its name a moment later.
    """
    with refusing(f"{path} cannot be read"):
        try:
            number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise DataError(f"{path} is not a file") from error
        facts = os.fstat(number)
        if not stat.S_ISREG(facts.st_mode):
            os.close(number)
            raise DataError(f"{path} is not a file")
        with os.fdopen(number, "rb") as file:
            if facts.st_size > most_bytes:
                raise DataError(
                    f"{path} has {facts.st_size} bytes, more than the {most_bytes} that are read"
                )
            yield file


def read_at_most(path: Path, most_bytes: int) -> bytes:
    """Return the content of a file; one that grows while it is read is refused, too."""
    with opened(path, most_bytes) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise DataError(f"{path} has more than the {most_bytes} bytes that are read")
    return content
