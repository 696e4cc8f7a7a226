"""A short configuration file has what its task presets; that of a run is taken as it is."""

import dataclasses

import pytest
import torch
from torch import nn

from datadefense.core.settings import SettingsError
from datadefense.runs.config import PLAIN, document_of, experiment_of, write_toml
from datadefense.runs.config_file import configure_by_file, with_presets
from datadefense.runs.configure import configure
from datadefense.tasks.own import OwnTask


def tamper(row):
    row[3] = 9.0
    return row


labels = torch.arange(400) % 4
rows = torch.randn(400, 4, generator=torch.Generator().manual_seed(0))
rows[torch.arange(400), labels] += 3
own = OwnTask(model=nn.Linear(4, 4), train=(rows, labels), poison=tamper, target=0)
OWN = f"{__name__}:own"


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "short.toml"
        path.write_text(text)
        return path

    return write


def test_what_a_short_file_leaves_out_is_what_the_task_presets(file):
    path = file(f'[task]\nname = "{OWN}"\n[defense]\nname = "median"\n[federation]\nrounds = 2\n')
    found = configure_by_file(path, {})
    wanted = configure(OWN, "cpu", {"attack": "none", "defense": "median", "rounds": "2"})
    assert document_of(found) == document_of(wanted)
    assert found.federation.clients != PLAIN["federation"]().clients
    assert found.server.clean == 60 != PLAIN["server"]().clean


def test_the_presets_are_of_the_files_scale(file):
    for scale in ("cpu", "paper"):
        path = file(f'scale = "{scale}"\n[task]\nname = "cifar10-southwest"\n')
        wanted = configure("cifar10-southwest", scale, {"attack": "none"})
        assert configure_by_file(path, {}) == wanted
    path = file(f'scale = "paper"\n[task]\nname = "{OWN}"\n')
    with pytest.raises(SettingsError, match="scale must be one of cpu, got 'paper'"):
        configure_by_file(path, {})


def test_an_attack_has_the_tasks_presets_and_comes_as_without_a_file(file):
    path = file('scale = "paper"\n[task]\nname = "cifar10-southwest"\n[attack]\nname = "pgd"\n')
    assert configure_by_file(path, {}) == configure("cifar10-southwest", "paper", {"attack": "pgd"})


def test_what_the_file_says_stands(file):
    path = file(
        f'[task]\nname = "{OWN}"\n[federation]\nclients = 12\n[server]\npoison = 3\nclean = 20\n'
        "known_clean = 2\n"
    )
    found = configure_by_file(path, {"server.poison": "4"})
    assert (found.federation.clients, found.server.clean, found.server.poison) == (12, 20, 4)


def test_the_presets_are_those_of_the_task_as_it_is_changed(file):
    path = file(f'[task]\nname = "{OWN}"\n')
    assert configure_by_file(path, {"task.server_clean": "44"}).server.clean == 44


def test_the_servers_folder_goes_with_presets_of_a_set_of_the_tasks_own(file, tmp_path):
    path = file(f'[task]\nname = "{OWN}"\n[server]\nfolder = "{tmp_path}"\n')
    assert configure_by_file(path, {}).server.folder == str(tmp_path)
    assert configure(OWN, "cpu", {"server.folder": str(tmp_path)}).server.folder == str(tmp_path)


@pytest.mark.parametrize("task", ["digits-edge", OWN])
def test_the_file_of_a_run_is_taken_as_it_is(file, task):
    plain = experiment_of({"task": {"name": task}, "attack": {"name": "pgd"}})
    presets = configure(task, "cpu", {"attack": "pgd"})
    assert plain.federation != presets.federation or plain.server != presets.server
    for experiment in (plain, presets, dataclasses.replace(presets, seed=3)):
        found = configure_by_file(file(write_toml(experiment)), {})
        assert document_of(found) == document_of(experiment)
        assert found.key() == experiment.key()


def test_a_stored_result_has_the_defaults_of_the_parts():
    """Its meaning must not change: it keeps only what differs from these."""
    assert experiment_of({"task": {"name": OWN}}).server == PLAIN["server"]()
    assert with_presets({"task": {"name": OWN}})["server"]["clean"] == 60


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[server]\npoisson = 2\n", "short.toml: server has no setting 'poisson', did you mean"),
        ("server = 2\n", r"short.toml: \[server\] must be a section, got 2"),
        ("[attack]\nepochs = 2\n", r"short.toml: \[attack\] has settings but no name"),
        ('[defense]\nname = "krumm"\n', "short.toml: no defense is called 'krumm'"),
        ("task = 1\n", r"short.toml: \[task\] must be a section, got 1"),
    ],
)
def test_a_file_that_cannot_be(file, text, message):
    with pytest.raises(SettingsError, match=message):
        configure_by_file(file(text), {})
