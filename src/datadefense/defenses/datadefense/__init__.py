"""DataDefense: learn from a defense set which examples are poisoned and which clients to trust."""

from datadefense.defenses.datadefense.printed import (
    DataDefenseAppendix,
    DataDefensePaper,
    DataDefenseReleased,
)
from datadefense.defenses.datadefense.robust import DataDefense

__all__ = ["DataDefense", "DataDefenseAppendix", "DataDefensePaper", "DataDefenseReleased"]
