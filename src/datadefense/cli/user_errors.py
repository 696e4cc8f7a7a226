"""Errors that are the user's to mend: said in one line. All others are shown with a traceback."""

import errno

from datadefense.cli.too_little_memory import too_little_memory
from datadefense.core.errors import DataDefenseError

FULL = (errno.ENOSPC, errno.EDQUOT)
"""A disk or a quota that is full: who writes to an open file is not told its name."""


def user_error(error: BaseException) -> str | None:
    """Return the line about an error that a user can do something about; None for any other.

    These are: too little memory; an error of ours (`datadefense.core.errors`); and an error of the
    system about a file that it names, or about a full disk. A ValueError of another library is none
    of them: it is a fault in the code, and one line would hide where.

    >>> user_error(FileNotFoundError(errno.ENOENT, "No such file or directory", "a.toml"))
    "[Errno 2] No such file or directory: 'a.toml'"
    >>> user_error(ValueError("shapes differ"))
    """
    if said := too_little_memory(error):
        return said
    if isinstance(error, OSError) and (error.filename is not None or error.errno in FULL):
        return str(error)
    return str(error) if isinstance(error, DataDefenseError) else None
