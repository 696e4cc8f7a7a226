"""The public surface: what ``datadefense`` offers, and what it costs to import."""

import subprocess
import sys
from importlib.metadata import EntryPoint, version

import pytest

import datadefense
from datadefense import defenses
from datadefense.core import registry


def test_every_public_name_is_there():
    for name in datadefense.__all__:
        assert getattr(datadefense, name) is not None
    assert dir(datadefense) == sorted(datadefense.__all__)
    with pytest.raises(AttributeError, match="No datadefense attribute krumm"):
        _ = datadefense.krumm


def test_the_version_is_one():
    assert version("datadefense") == datadefense.__version__


def test_importing_is_light():
    code = (
        "import sys, datadefense, datadefense.cli.app; "
        "heavy = {'torch', 'numpy', 'matplotlib', 'sklearn', 'flwr'} & set(sys.modules); "
        "sys.exit(f'imports {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_third_partys_defense_joins_by_entry_point(monkeypatch, datadefense_log):
    entries = [
        EntryPoint("their-median", "datadefense.defenses:Median", defenses.REGISTRY.group),
        EntryPoint("krum", "datadefense.defenses:Median", defenses.REGISTRY.group),
        EntryPoint("broken", "no.such.module:Thing", defenses.REGISTRY.group),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: entries)
    available = defenses.available()
    assert available["their-median"] is defenses.Median
    assert available["krum"] is defenses.Krum
    assert "broken" not in available
    assert isinstance(defenses.create("their-median"), defenses.Median)
    assert "the name 'krum' is taken" in datadefense_log.text
    assert "no.such.module:Thing: cannot be loaded" in datadefense_log.text
