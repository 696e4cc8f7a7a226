"""All studies by name."""

from collections.abc import Mapping

from datadefense.reproduction.own_studies import OWN
from datadefense.reproduction.study import Study

STUDIES: Mapping[str, Study] = {study.name: study for study in OWN}
"""What ``datadefense reproduce`` knows."""
