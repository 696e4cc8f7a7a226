import base64
import math
from dataclasses import replace
from statistics import median

import pytest
from tests.records import marked_places, record_of, suspicions
from tests.report.synthetic import Size, defense_set, records_of

from datadefense.defense_sets.preview import gallery_of
from datadefense.report.detector_data import bands, detector_data

SIZE = Size(rounds=9, examples=30)
RECORDS = records_of(SIZE)
GALLERY = gallery_of(defense_set(SIZE))


def bits(text, count):
    return [bool(base64.b64decode(text)[i // 8] >> (7 - i % 8) & 1) for i in range(count)]


def test_gamma_and_marks_are_those_of_the_rounds():
    data = detector_data(RECORDS, GALLERY, 10_000, [])
    levels = base64.b64decode(data["gamma"])
    marks = bits(data["marked"], 9 * 30)
    assert data["rounds"] == list(range(1, 10))
    for row, record in enumerate(RECORDS):
        for place, score in enumerate(suspicions(record)):
            level = levels[row * 30 + place]
            assert abs(level / 254 - score) <= 0.5 / 254 + 1e-9
            assert marks[row * 30 + place] == (place in marked_places(record))
    assert data["final"] == pytest.approx(suspicions(RECORDS[-1]), rel=1e-3)
    for place, share in enumerate(data["share"]):
        times = sum(place in marked_places(record) for record in RECORDS)
        assert share == round(100 * times / 9)


def test_the_set_is_in_column_by_column_and_each_picture_once():
    pictures = ["first"]
    examples = detector_data(RECORDS, GALLERY, 10_000, pictures)["examples"]
    again = detector_data(RECORDS, GALLERY, 10_000, pictures)["examples"]
    assert again == examples
    assert len(pictures) == 31
    assert examples["known"] == [1] * 7 + [0] * 23
    assert examples["truth"] == [1] * 24 + [2] * 6
    assert [pictures[place] for place in examples["picture"]] == [one.picture for one in GALLERY]
    assert examples["label"] == [place % 10 for place in range(30)]


def test_bands_are_quantiles_of_each_part():
    data = detector_data(RECORDS, GALLERY, 10_000, [])
    assert list(data["bands"]) == ["poisoned", "others", "known clean"]
    for name, places in (
        ("poisoned", range(24, 30)),
        ("others", range(7, 24)),
        ("known clean", range(7)),
    ):
        low, middle, high = data["bands"][name]
        for row, record in enumerate(RECORDS):
            values = [suspicions(record)[place] for place in places]
            assert middle[row] == pytest.approx(median(values), abs=1e-3)
            assert min(values) - 1e-3 <= low[row] <= middle[row] <= high[row] <= max(values) + 1e-3


def test_rounds_without_any_gamma_are_gaps():
    assert all(map(math.isnan, bands(defense_scores())[1]))
    held = record_of(10, report={"held": "nobody"})
    assert detector_data([*RECORDS, held], GALLERY, 10_000, [])["rounds"] == list(range(1, 10))
    assert detector_data([held], GALLERY, 10_000, []) is None


def defense_scores():
    import numpy as np

    return np.full((2, 4), math.nan)


def test_examples_are_found_by_their_ids_whatever_the_order_of_a_record():
    turned = [
        replace(
            record,
            detector=replace(
                record.detector,
                suspicion=dict(reversed(record.detector.suspicion.items())),
                marked=tuple(reversed(record.detector.marked)),
            ),
        )
        for record in RECORDS
    ]
    assert detector_data(turned, GALLERY, 10_000, []) == detector_data(RECORDS, GALLERY, 10_000, [])


def test_an_example_that_a_round_does_not_judge_is_a_gap():
    opinion = RECORDS[0].detector
    fewer = {one: value for one, value in opinion.suspicion.items() if one != "x3"}
    odd = fewer | {"x4": None}
    first = replace(RECORDS[0], detector=replace(opinion, suspicion=odd))
    data = detector_data([first, *RECORDS[1:]], GALLERY, 10_000, [])
    levels = base64.b64decode(data["gamma"])
    assert [place for place in range(30) if levels[place] == 255] == [3, 4]
    assert 255 not in levels[30:]


def test_a_set_that_is_not_known_or_not_the_one():
    for gallery in (None, GALLERY[:-1]):
        data = detector_data(RECORDS, gallery, 10_000, [])
        assert data["examples"] is None
        assert list(data["bands"]) == ["all"]


def test_long_runs_are_thinned_out_but_shares_count_all_rounds():
    records = records_of(Size(rounds=200, examples=20))
    data = detector_data(records, None, 1000, [])
    assert len(data["rounds"]) <= 51
    assert data["rounds"][-1] == 200
    times = sum(19 in marked_places(record) for record in records)
    assert data["share"][19] == round(100 * times / 200)
