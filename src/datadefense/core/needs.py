"""What a plug-in wants of the server, as data, and the sentence that says what is missing."""

import enum
from collections.abc import Mapping, Sized

from datadefense.core.errors import InputError


class Need(enum.Flag):
    """What a defense cannot work without; checked before the first round."""

    NONE = 0
    MODEL = enum.auto()
    """The model as a function of its parameters: ``Server(predict=...)``."""
    CLEAN_EXAMPLES = enum.auto()
    """Examples known to be clean, a root set: ``Server(clean=...)``."""
    DEFENSE_SET = enum.auto()
    """Examples of which some are poisoned: ``Server(defense_set=...)``."""
    CLIENT_IDENTITY = enum.auto()
    """Client ids that mean the same client in every round, and that a client cannot choose."""


class NeedsError(InputError):
    """A defense wants of the server what it does not have; raised before a run, never in one."""


ON_SERVER: Mapping[Need, str] = {
    Need.MODEL: "a model",
    Need.CLEAN_EXAMPLES: "clean examples",
    Need.DEFENSE_SET: "a defense set",
}
"""In words, what a server has or has not."""
ARGUMENTS: Mapping[Need, str] = {
    Need.MODEL: "predict",
    Need.CLEAN_EXAMPLES: "clean",
    Need.DEFENSE_SET: "defense_set",
}
"""Under which name `datadefense.core.server.Server` takes it."""


def words(needs: Need) -> str:
    """Say in words what is needed; an empty text if nothing is.

    >>> words(Need.MODEL | Need.CLEAN_EXAMPLES)
    'a model and clean examples on the server'
    """
    parts = [text for need, text in ON_SERVER.items() if need in needs]
    if parts:
        parts[-1] += " on the server"
    if Need.CLIENT_IDENTITY in needs:
        parts.append("clients that keep their ids")
    return " and ".join(parts)


def needs_words(plugin: object) -> str:
    """Say in words what a plug-in, class or instance, wants of the server; empty if nothing.

    >>> from datadefense.defenses import FlTrust
    >>> needs_words(FlTrust)
    'a model and clean examples on the server'
    """
    needs = getattr(plugin, "needs", Need.NONE)
    return words(needs) if isinstance(needs, Need) else ""


def offered(model: object | None, clean: Sized | None, defense_set: Sized | None) -> Need:
    """Return what a server offers that has these; an empty set of examples is none."""
    offers = Need.NONE if model is None else Need.MODEL
    if clean is not None and len(clean):
        offers |= Need.CLEAN_EXAMPLES
    if defense_set is not None and len(defense_set):
        offers |= Need.DEFENSE_SET
    return offers


def call_with(callee: str, arguments: Mapping[Need, str], needs: Need) -> str:
    """Return the call that gives a server what is needed.

    >>> call_with("Server", ARGUMENTS, Need.MODEL | Need.DEFENSE_SET)
    'Server(predict=..., defense_set=...)'
    """
    given = ", ".join(f"{name}=..." for need, name in arguments.items() if need in needs)
    return f"{callee}({given})"


def wanted(name: str, needs: Need, remedy: str | None = None) -> str:
    """Return the sentence that says what ``name`` needs.

    ``remedy`` says how to give it; by default by the arguments of a `Server`.

    >>> wanted("fltrust", Need.MODEL)
    'fltrust needs a model on the server: Server(predict=...), see docs/defenses.md'
    """
    if remedy is None:
        asked = any(need in needs for need in ARGUMENTS)
        remedy = call_with("Server", ARGUMENTS, needs) if asked else "authenticate them"
    return f"{name} needs {words(needs)}: {remedy}, see docs/defenses.md"
