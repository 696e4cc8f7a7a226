"""Real experiments on the digits, as small as they come: a second or so each."""

from datadefense.runs.presets import experiment

QUICK = {
    "rounds": 2,
    "clients": 40,
    "clients_per_round": 3,
    "epochs": 1,
    "attack_epochs": 1,
    "warm_accuracy_percent": 20,
    "period": 2,
    "test_examples": 100,
    "checkpoint_every": 1,
}


def quick(**changes):
    return experiment(
        "digits-edge", "cpu", {key: str(value) for key, value in (QUICK | changes).items()}
    )
