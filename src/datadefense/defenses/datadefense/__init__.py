"""DataDefense: keep out of the model what a defense set shows to be poison."""

from datadefense.defenses.datadefense.algorithm import DataDefense
from datadefense.defenses.datadefense.learned import DataDefenseLearned
from datadefense.defenses.datadefense.published import (
    DataDefenseAppendix,
    DataDefensePaper,
    DataDefenseReleased,
)

__all__ = [
    "DataDefense",
    "DataDefenseAppendix",
    "DataDefenseLearned",
    "DataDefensePaper",
    "DataDefenseReleased",
]
