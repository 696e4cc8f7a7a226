"""A registry: the plug-ins of one kind by name, ours, installed ones and ``module:Class``."""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from operator import attrgetter
from typing import Generic, TypeVar

import torch

from datadefense.core.settings import SettingsError, build, suggest

logger = logging.getLogger(__name__)
PluginT = TypeVar("PluginT")


@dataclass(frozen=True, slots=True)
class Registry(Generic[PluginT]):
    """Plug-ins of one kind. A plug-in is a class, a frozen dataclass whose fields are its settings.

    Args:
        kind: what a plug-in is called in messages, for example ``"defense"``.
        base: the class that each of them has among its bases.
        group: the entry point group in which other packages name theirs.
        ours: the plug-ins of this package.
        class_for: ``class_for(found, module, name)`` returns the class that an instance, or a
            function that makes one, stands for; None: only classes can be named.
        also: names that a user may give and that stand for no plug-in.
    """

    kind: str
    base: type[PluginT]
    group: str
    ours: Mapping[str, type[PluginT]]
    class_for: Callable[[object, str, str], type[PluginT]] | None = None
    also: tuple[str, ...] = ()

    @property
    def _own(self) -> str:
        return "module:Class" if self.class_for is None else "module:name"

    def available(self) -> dict[str, type[PluginT]]:
        """Return our plug-ins and, behind them, those of installed packages.

        Our names stay ours, and a package that cannot be loaded is left out with a warning in the
        log: somebody else's fault must not stop a run.
        """
        found: dict[str, type[PluginT]] = {}
        for entry in entry_points(group=self.group):
            if entry.name in self.ours:
                logger.warning("%s: the name %r is taken; left out", entry.value, entry.name)
                continue
            try:
                found[entry.name] = self._class(entry.load(), entry.value)
            except Exception as error:
                logger.warning("%s: cannot be loaded (%s); left out", entry.value, error)
        return {**self.ours, **dict(sorted(found.items()))}

    def find(self, name: str) -> type[PluginT]:
        """Return the class of a name; ``some.module:SomeClass`` names one of one's own."""
        if ":" in name:
            return self._imported(name)
        if name in self.ours:
            return self.ours[name]
        classes = self.available()
        if name not in classes:
            hint = suggest(name, (*classes, *self.also))
            own = "" if hint.endswith("?") else f", or {self._own} of your own"
            raise SettingsError(f"no {self.kind} is called {name!r}{hint}{own}")
        return classes[name]

    def create(self, name: str, settings: Mapping[str, object] | None = None) -> PluginT:
        """Make a plug-in by name from settings or their texts, as the command line does."""
        return build(self.find(name), settings or {}, f"{self.kind} {name}")

    def name_of(self, plugin: PluginT) -> str:
        """Return the name under which `find` gives the class of a plug-in.

        Others' classes are told by what their names load, not by where a package says that they
        are: it may name a class in one module and have it in another.
        """
        cls = type(plugin)
        for name, known in self.ours.items():
            if known is cls:
                return name
        for name, known in self.available().items():
            if known is cls:
                return name
        return f"{cls.__module__}:{cls.__qualname__}"

    def __iter__(self) -> Iterator[str]:
        return iter(self.available())

    def _imported(self, name: str) -> type[PluginT]:
        """Import what is named by its module, for one that is not installed.

        torch's randomness is seeded meanwhile: a model that is made at import has the same values
        in every process.
        """
        module, _, attribute = name.partition(":")
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                found = attrgetter(attribute)(import_module(module))
        except (ImportError, AttributeError, ValueError, TypeError, SyntaxError) as error:
            raise SettingsError(f"cannot import the {self.kind} {name!r}: {error}") from error
        return self._class(found, name)

    def _class(self, found: object, name: str) -> type[PluginT]:
        """Return the class that an imported thing is, or that it stands for."""
        if isinstance(found, type):
            if issubclass(found, self.base):
                return found
        elif self.class_for is not None and (isinstance(found, self.base) or callable(found)):
            module, _, attribute = name.partition(":")
            return self.class_for(found, module, attribute)
        wanted = "a class" if self.class_for is None else "a class, an instance or a function"
        raise SettingsError(f"{name!r} must be {wanted} of {self.kind}s, got {found!r}")


def about(plugin: type[object]) -> str:
    """Return the one line of help of a plug-in: the first of its docstring."""
    return (plugin.__doc__ or "").strip().partition("\n")[0]
