import pytest
from tests.records import record_of

from datadefense.report.downsample import shown_rounds


def records(count, attacked=()):
    return [record_of(i, [1], [1] if i in attacked else [], [1.0]) for i in range(1, count + 1)]


def test_few_rounds_are_all_shown():
    assert shown_rounds(records(7), 7) == records(7)
    assert shown_rounds([], 7) == []


@pytest.mark.parametrize("count", [8, 100, 1501])
@pytest.mark.parametrize("most", [1, 7, 50])
def test_about_as_many_as_wanted_and_the_last(count, most):
    shown = [record.round for record in shown_rounds(records(count), most)]
    assert len(shown) <= most + 1 or most >= count
    assert shown == sorted(set(shown))
    assert shown[-1] == count


def test_attacked_rounds_stand_for_their_neighbours():
    shown = shown_rounds(records(100, attacked={11, 21, 51}), 25)
    assert {11, 21, 51} <= {record.round for record in shown}
