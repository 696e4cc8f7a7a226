"""How a registry treats plug-ins of other packages: the same for every kind of plug-in."""

from importlib.metadata import EntryPoint

from datadefense.core import registry as registry_module
from datadefense.runs.configure import configure


def install(monkeypatch, kind, *pairs):
    """Let packages name what they bring to a group of entry points: pairs of name, module:Class."""
    entries = [EntryPoint(name, value, kind) for name, value in pairs]
    monkeypatch.setattr(
        registry_module, "entry_points", lambda group: entries if group == kind else []
    )


def joins_by_entry_point(registry, plugin, taken, monkeypatch, log):
    """A third party's plug-in joins ours; our names stay ours, and what is broken is left out.

    ``plugin`` has one setting, which is not the default; ``taken`` is the name of one of ours.
    """
    own = f"{type(plugin).__module__}:{type(plugin).__qualname__}"
    install(
        monkeypatch,
        registry.group,
        (plugin.name, own),
        (taken, own),
        ("broken", "no.such.module:Thing"),
    )
    assert registry.find(plugin.name) is type(plugin)
    assert registry.find(taken) is registry.ours[taken]
    assert list(registry) == [*registry.ours, plugin.name]
    assert f"the name {taken!r} is taken" in log.text
    assert "no.such.module:Thing: cannot be loaded" in log.text
    is_configured_by(registry.kind, plugin, plugin.name, "")


def is_configured_by(kind, plugin, name, prefix):
    """A run takes the plug-in by this name, and its setting by its name behind a prefix."""
    ((setting, value),) = vars(plugin).items()
    chosen = configure("digits-edge", "cpu", {kind: name, f"{prefix}{setting}": str(value)})
    assert getattr(chosen, kind) == plugin
    assert chosen.name_of(kind) == name
