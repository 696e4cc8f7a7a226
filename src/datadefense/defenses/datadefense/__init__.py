"""DataDefense: keep poison out of the model, with the help of a defense set."""

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
