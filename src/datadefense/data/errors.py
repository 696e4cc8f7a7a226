"""What goes wrong with data: one error, and how a cause is put into one line."""


class DataError(ValueError):
    """A data set that is missing, incomplete, broken or not what it should be."""


def one_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its kind if it has none."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
