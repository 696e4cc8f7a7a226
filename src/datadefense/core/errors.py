"""Errors: all that this package raises on purpose have one base.

::

    DataDefenseError
        InputError              arguments that do not fit together, or that lack a part
            WrongKindError      clients send whole models where updates are expected, or the reverse
            TooFewClientsError  a round too small for a rule
            UnhandledBuffersError
        SettingsError           a setting that is unknown or out of range
        FileError               a file or folder that cannot be used
        DataError               a data set that is missing or broken
        StateError              a state that is broken, or that is of another run
        TooFewNodesError, WorkerError, FlowerRunError, ...

Each stands in the module that raises it and keeps a built-in base (``ValueError`` mostly), so that
code that catches the built-in one goes on working. The command line prints an error of this tree in
one line; any other error is a fault of ours or of another library, and is shown with its traceback.
"""


class DataDefenseError(Exception):
    """Base of every error that this package raises on purpose."""


class InputError(DataDefenseError, ValueError):
    """What the caller handed over does not fit together, or lacks a part that is needed."""
