"""Laws for plug-ins, ours and yours: ``check_defense``, ``check_attack`` and so on, one a kind."""

from datadefense.testing.attack_laws import ATTACK_LAWS, AttackLaw, check_attack
from datadefense.testing.broken import BrokenLawError
from datadefense.testing.laws import LAWS, Law, check_defense
from datadefense.testing.preaggregator_laws import (
    PREAGGREGATOR_LAWS,
    PreAggregatorLaw,
    check_preaggregator,
)
from datadefense.testing.schedule_laws import SCHEDULE_LAWS, ScheduleLaw, check_schedule
from datadefense.testing.task_laws import TASK_LAWS, TaskLaw, check_task
from datadefense.testing.toy import TOY_DIM, toy_round, toy_server

__all__ = [
    "ATTACK_LAWS",
    "LAWS",
    "PREAGGREGATOR_LAWS",
    "SCHEDULE_LAWS",
    "TASK_LAWS",
    "TOY_DIM",
    "AttackLaw",
    "BrokenLawError",
    "Law",
    "PreAggregatorLaw",
    "ScheduleLaw",
    "TaskLaw",
    "check_attack",
    "check_defense",
    "check_preaggregator",
    "check_schedule",
    "check_task",
    "toy_round",
    "toy_server",
]
