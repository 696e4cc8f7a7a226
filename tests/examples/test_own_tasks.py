"""The examples keep the laws and run: fedavg lets the backdoor in, the defense does not."""

import importlib

import pytest
from typer.testing import CliRunner

from datadefense.cli.app import app
from datadefense.runs.configure import configure
from datadefense.runs.run import start
from datadefense.simulation.pool import Pool
from datadefense.testing import check_task

pytest.importorskip("sklearn")
NAMES = ["examples.tumours:task", "examples.small_digits:task"]


@pytest.mark.parametrize("name", NAMES)
def test_the_example_keeps_the_laws(name):
    module, _, attribute = name.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    check_task(found() if name == NAMES[0] else found)


@pytest.mark.parametrize("name", NAMES)
def test_the_command_in_its_docstring_runs(name, tmp_path, monkeypatch):
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path / "cache"))
    module = importlib.import_module(name.partition(":")[0])
    command = module.__doc__.partition("datadefense ")[2].replace("\\\n", " ").split()
    assert command[:3] == ["run", "--task", name]
    command[-1] = "2"
    folder = tmp_path / "run"
    done = CliRunner().invoke(app, [*command, "--workers", "0", "--out", str(folder)])
    assert done.exit_code == 0, done.output
    assert f"{name}, data-poisoning against datadefense" in done.output
    assert (folder / "report.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_backdoor_gets_in_undefended_and_stays_out_defended(name, tmp_path, monkeypatch):
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path / "cache"))
    rates = {}
    for defense in ("fedavg", "datadefense"):
        wanted = {"attack": "data-poisoning", "malicious": "0.2", "defense": defense}
        wanted |= {"rounds": "20", "evaluate_every": "20"}
        experiment = configure(name, "cpu", wanted)
        with start(experiment, tmp_path / defense) as run, Pool(run.federation, 0) as pool:
            rates[defense] = list(run.rounds(pool))[-1].asr_percent
    assert rates["fedavg"] > 50
    assert rates["datadefense"] < 10
