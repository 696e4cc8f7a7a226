"""Every study, the paper's and ours, at both scales: points that can be told apart and run."""

import pytest

from datadefense.studies.holding_studies import HOLDING
from datadefense.studies.own_studies import OWN
from datadefense.studies.paper_studies import PAPER
from datadefense.studies.precision_study import PRECISION
from datadefense.studies.studies import STUDIES

CASES = [
    pytest.param(study, scale, id=f"{study.name}-{scale}")
    for study in STUDIES.values()
    for scale in ("cpu", "paper")
]


def test_every_study_is_known_by_a_name_of_its_own():
    assert list(STUDIES.values()) == [*HOLDING, *PAPER, *OWN, PRECISION]


@pytest.mark.parametrize(("study", "scale"), CASES)
def test_points_have_a_label_an_axis_and_no_two_the_same(study, scale):
    labels = [point.labels for point in study.points(scale)]
    assert bool(labels) == ((study.name, scale) != ("paper-size", "cpu"))
    assert len(set(labels)) == len(labels)
    assert {len(one) for one in labels} <= {len(study.axes)}


@pytest.mark.parametrize(("study", "scale"), CASES)
def test_labels_and_axes_fit_into_a_table(study, scale):
    words = [*study.axes, *(word for point in study.points(scale) for word in point.labels)]
    assert [word for word in words if "|" in word or not word.strip()] == []


@pytest.mark.parametrize(("study", "scale"), CASES)
def test_experiments_can_be_built(study, scale):
    """Making an experiment checks it; its defense must exist and have enough clients."""
    for point in study.points(scale):
        one = point.experiment
        assert (one.scale, one.seed) == (scale, 0)
        one.defense.check_clients(one.federation.clients_per_round)


@pytest.mark.parametrize(("study", "scale"), CASES)
def test_a_calm_point_is_the_run_that_others_are_compared_with(study, scale):
    for point in study.points(scale):
        one = point.experiment
        if not one.attacked:
            assert one == one.without_attack()
