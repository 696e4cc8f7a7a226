"""The console that every command prints to: text is shown as it is, no markup and no emoji in it.

Names of clients, folders and data sets are foreign: ``[/red]`` would end the command, and a client
called ``:skull:`` would be shown as a picture.
"""

from rich.console import Console


def plain_console(*, stderr: bool = False) -> Console:
    """Return a console on which brackets and colons mean nothing."""
    return Console(stderr=stderr, markup=False, emoji=False)
