"""All studies by name."""

from collections.abc import Mapping

from datadefense.reproduction.holding_studies import HOLDING
from datadefense.reproduction.own_studies import OWN
from datadefense.reproduction.paper_studies import PAPER
from datadefense.reproduction.study import Study

STUDIES: Mapping[str, Study] = {study.name: study for study in (*HOLDING, *PAPER, *OWN)}
"""What ``datadefense reproduce`` knows."""
