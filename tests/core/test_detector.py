import math

import torch

from datadefense import DefenseSet, Examples
from datadefense.core.detector import DetectorRecord, plain_detector


def test_a_record_is_by_id():
    owned = DefenseSet(
        Examples(torch.zeros(3, 2), torch.tensor([0, 1, 0])),
        torch.zeros(3, dtype=torch.bool),
        torch.zeros(3, 1),
        ids=("a", "b", "c"),
    )
    suspicion = torch.tensor([0.123456, 1.0, 0.5])
    record = DetectorRecord.of(owned, suspicion, torch.tensor([False, True, True]))
    assert record == DetectorRecord({"a": 0.1235, "b": 1.0, "c": 0.5}, ("b", "c"))


def test_what_a_third_party_gives_is_made_plain():
    odd = DetectorRecord({3: torch.tensor(0.5), "b": math.inf, "c": None}, [3])
    plain = plain_detector(odd)
    assert plain == DetectorRecord({"3": 0.5, "b": None, "c": None}, ("3",))
    assert type(plain.suspicion["3"]) is float
