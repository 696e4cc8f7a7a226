"""A run remembers what the user's own code was, and says on resuming that it has changed."""

import importlib
import sys

import pytest
from tests.runs.quick import quick

from datadefense.runs.own_code import digests, warn_of_changes, write_digests
from datadefense.runs.run import resume, start
from datadefense.simulation.pool import Pool

SOURCE = '''
from dataclasses import dataclass
from datadefense.core.defense import Combined, Rule


@dataclass(frozen=True)
class Half(Rule):
    """Half of the mean."""

    name = "half"

    def combine(self, round):
        return Combined(0.5 * round.updates.mean(0))
'''
PRE = '''
from dataclasses import dataclass
import torch
from datadefense import Mixed, Mixer


@dataclass(frozen=True)
class Same(Mixer):
    """Change nothing."""

    name = "same"

    def mix(self, round, server):
        return Mixed(torch.ones(round.num_clients, dtype=torch.float64))
'''
CHANGED = "the code of my_half:Half has changed since the run began: rounds before and after differ"


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Modules on the path, gone afterwards; what is returned edits that of the defense."""
    (tmp_path / "my_half.py").write_text(SOURCE)
    (tmp_path / "my_same.py").write_text(PRE)
    monkeypatch.syspath_prepend(tmp_path)

    def edit(text):
        (tmp_path / "my_half.py").write_text(text)
        sys.modules.pop("my_half", None)
        importlib.invalidate_caches()

    yield edit
    for name in ("my_half", "my_same"):
        sys.modules.pop(name, None)


def test_each_plugin_of_ones_own_has_a_digest_and_no_other(mine):
    assert digests(quick(defense="multi-krum")) == {}
    found = digests(quick(defense="my_same:Same+my_half:Half"))
    assert sorted(found) == ["my_half:Half", "my_same:Same"]
    mine(SOURCE.replace("0.5", "0.7"))
    again = digests(quick(defense="my_same:Same+my_half:Half"))
    assert again["my_same:Same"] == found["my_same:Same"]
    assert again["my_half:Half"] != found["my_half:Half"]


def test_nothing_is_written_where_all_code_is_ours(tmp_path):
    write_digests(tmp_path, quick(defense="nnm+krum"))
    assert list(tmp_path.iterdir()) == []


def test_only_what_has_changed_is_said(mine, tmp_path, datadefense_log):
    folder = tmp_path / "run"
    folder.mkdir()
    write_digests(folder, quick(defense="my_same:Same+my_half:Half"))
    warn_of_changes(folder, quick(defense="my_same:Same+my_half:Half"))
    assert datadefense_log.text == ""
    mine(SOURCE.replace("0.5", "0.7"))
    warn_of_changes(folder, quick(defense="my_same:Same+my_half:Half"))
    assert [record.message for record in datadefense_log.records] == [CHANGED]


@pytest.mark.usefixtures("mine")
def test_a_damaged_file_does_not_stop_a_run(tmp_path, datadefense_log):
    (tmp_path / "code.json").write_text("[1")
    warn_of_changes(tmp_path, quick(defense="my_half:Half"))
    assert "whether code of your own has changed is not known" in datadefense_log.text


def test_a_run_that_goes_on_with_other_code_says_so(mine, tmp_path, datadefense_log):
    folder = tmp_path / "run"
    with start(quick(defense="my_half:Half"), folder) as run, Pool(run.federation, 0) as pool:
        next(run.rounds(pool))
        run.save()
    resume(folder).close()
    assert CHANGED not in datadefense_log.text
    mine(SOURCE.replace("0.5", "0.7"))
    resume(folder).close()
    assert CHANGED in datadefense_log.text
    datadefense_log.clear()
    (folder / "code.json").unlink()
    with resume(folder) as run:
        assert run.progress.round == 1, "older folders have no such file"
    assert CHANGED not in datadefense_log.text
