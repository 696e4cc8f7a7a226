"""Real experiments on the digits, as small as they come: a second or so each."""

from datadefense.runs.configure import configure

QUICK = {
    "rounds": 2,
    "clients": 40,
    "clients_per_round": 3,
    "federation.epochs": 1,
    "warm.accuracy_percent": 20,
    "test_examples": 100,
    "checkpoint_every": 1,
}


def quick(**changes):
    """The smallest run, with settings changed by key: ``quick(seed=1, **{"server.poison": 3})``."""
    shorter = {"period": 2} if "malicious" not in changes and "schedule" not in changes else {}
    if changes.get("attack", "pgd-replacement") == "none":
        shorter = {}
    elif changes.get("attack") not in ("data-poisoning", "absent"):
        shorter = {"attack.epochs": 1, **shorter}
    wanted = QUICK | shorter | changes
    return configure("digits-edge", "cpu", {key: str(value) for key, value in wanted.items()})
