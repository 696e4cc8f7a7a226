"""All studies by name."""

from collections.abc import Mapping

from datadefense.studies.holding_studies import HOLDING
from datadefense.studies.own_studies import OWN
from datadefense.studies.paper_studies import PAPER
from datadefense.studies.precision_study import PRECISION
from datadefense.studies.study import Study

STUDIES: Mapping[str, Study] = {study.name: study for study in (*HOLDING, *PAPER, *OWN, PRECISION)}
"""What ``datadefense reproduce`` knows."""
