"""Real experiments on the digits, as small as they come: a second or so each."""

from datadefense import attacks
from datadefense.runs.configure import configure

QUICK = {
    "rounds": 2,
    "clients": 12,
    "clients_per_round": 3,
    "federation.epochs": 1,
    "warm.accuracy_percent": 20,
    "test_examples": 100,
    "checkpoint_every": 1,
}


def quick(**changes):
    """An experiment with settings by key; what shortens an attack is set where it applies."""
    small = dict(QUICK)
    attack = changes.get("attack", "pgd-replacement")
    if attack != "none" and "epochs" in attacks.REGISTRY.find(attack).__dataclass_fields__:
        small["attack.epochs"] = 1
    if not {"malicious", "schedule"} & set(changes):
        small["period"] = 2
    return configure(
        "digits-edge", "cpu", {key: str(value) for key, value in (small | changes).items()}
    )
