import pytest

from datadefense.runs.baseline import Floor, cached_floor, read_floor, write_floor
from datadefense.runs.config import Experiment
from datadefense.runs.configure import configure

ATTACKED = configure("digits-edge", "cpu", {"attack": "pgd"})


def test_there_and_back(tmp_path):
    path = tmp_path / "new" / "floor.json"
    write_floor(path, Floor(3.5, 91.25), ATTACKED)
    assert read_floor(path) == Floor(3.5, 91.25)
    assert '[attack]\\nname = \\"none\\"' in path.read_text()


@pytest.mark.parametrize("content", ["", "[]", "3", "{}", '{"asr_percent": "high"}', "\xff"])
def test_a_broken_one_is_none(tmp_path, content):
    path = tmp_path / "floor.json"
    assert read_floor(path) is None
    path.write_text(content, encoding="latin-1")
    assert read_floor(path) is None


def test_old_ones_have_no_accuracy(tmp_path):
    (tmp_path / "floor.json").write_text('{"asr_percent": 2, "config": "..."}')
    assert read_floor(tmp_path / "floor.json") == Floor(2.0, None)


def test_attacks_and_defenses_share_one(monkeypatch, tmp_path):
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path))
    places = {
        cached_floor(configure("digits-edge", "cpu", {"attack": name}))
        for name in ("pgd", "none", "black-box")
    }
    assert len(places) == 1
    assert cached_floor(Experiment(seed=1)) not in places
