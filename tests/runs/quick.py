"""Real experiments on the digits, as small as they come: a second or so each."""

from datadefense.runs.configure import configure

QUICK = {
    "rounds": 2,
    "clients": 12,
    "clients_per_round": 3,
    "federation.epochs": 1,
    "attack.epochs": 1,
    "warm.accuracy_percent": 20,
    "schedule.period": 2,
    "test_examples": 100,
    "checkpoint_every": 1,
}


def quick(**changes):
    return configure(
        "digits-edge", "cpu", {key: str(value) for key, value in (QUICK | changes).items()}
    )
