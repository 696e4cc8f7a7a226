"""The setups: the embedded default and the paper's six, each at two scales.

``paper`` has the paper's numbers (its section 4 and appendix); ``cpu`` is reduced until 2 cores run
it in minutes, with attackers strong enough for the backdoor to go in undefended.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import replace

from datadefense.core.settings import SettingsError, check_choice, check_float, parse, suggest
from datadefense.runs.config import Experiment

DIGITS = Experiment()

CIFAR_PAPER = Experiment(
    scale="paper",
    rounds=1500,
    dataset="cifar10",
    clients=200,
    clients_per_round=10,
    model="vgg9",
    warm_accuracy_percent=76.08,
    warm_learning_rate=0.02,
    warm_batch_size=128,
    epochs=2,
    learning_rate=0.001,
    decay=0.998,
    augment=True,
    attack_epochs=2,
    attack_learning_rate=0.02,
    attack_clean=400,
    attack_poison=100,
    period=10,
    evaluate_every=10,
    checkpoint_every=10,
)
CIFAR_CPU = replace(
    CIFAR_PAPER,
    scale="cpu",
    rounds=30,
    width=0.25,
    warm_accuracy_percent=72.0,
    warm_batch_size=64,
    attack_epochs=5,
    period=5,
    test_examples=5000,
    evaluate_every=3,
    checkpoint_every=5,
)
DIGITS_PAPER = replace(
    CIFAR_PAPER,
    setup="emnist-ardis",
    dataset="emnist-digits",
    model="mnist-net",
    clients=3383,
    clients_per_round=30,
    warm_accuracy_percent=88.0,
    warm_learning_rate=0.01,
    warm_batch_size=64,
    epochs=5,
    augment=False,
    attack_epochs=5,
    attack_clean=100,
    attack_poison=66,
    radius=1.0,
    replacement_radius=2.0,
)
TWEETS_PAPER = replace(
    CIFAR_PAPER,
    setup="sentiment-yl",
    dataset="sentiment140",
    model="lstm",
    clients=1948,
    partition="iid",
    vocabulary=135_071,
    length=100,
    warm_accuracy_percent=75.0,
    warm_learning_rate=0.05,
    warm_batch_size=64,
    batch_size=20,
    learning_rate=0.05,
    augment=False,
    attack_learning_rate=0.05,
    attack_clean=140,
    attack_poison=60,
    radius=1.0,
    replacement_radius=0.01,
)


def _cifar(setup: str, radius: float, replacement: float, cpu: float) -> dict[str, Experiment]:
    """One CIFAR-10 setup: the paper's two radii, and ours at cpu scale."""
    return {
        "cpu": replace(CIFAR_CPU, setup=setup, radius=cpu, replacement_radius=cpu),
        "paper": replace(
            CIFAR_PAPER,
            setup=setup,
            radius=radius,
            replacement_radius=replacement,
            radius_decay=0.998,
        ),
    }


SETUPS: Mapping[str, Mapping[str, Experiment]] = {
    "digits-edge": {"cpu": DIGITS, "paper": replace(DIGITS, scale="paper")},
    "cifar10-label-flip": _cifar("cifar10-label-flip", 2.0, 2.0, 2.0),
    "cifar10-southwest": _cifar("cifar10-southwest", 1.5, 0.083, 1.0),
    "cifar10-trigger": _cifar("cifar10-trigger", 0.5, 0.083, 1.0),
    "cifar100-trigger": {
        scale: replace(
            one,
            dataset="cifar100",
            warm_accuracy_percent=50.43 if scale == "paper" else 25.0,
        )
        for scale, one in _cifar("cifar100-trigger", 0.5, 0.083, 1.0).items()
    },
    "emnist-ardis": {
        "cpu": replace(
            DIGITS_PAPER,
            scale="cpu",
            rounds=30,
            clients=600,
            epochs=1,
            learning_rate=0.01,
            decay=1.0,
            period=5,
            evaluate_every=5,
            checkpoint_every=5,
        ),
        "paper": DIGITS_PAPER,
    },
    "sentiment-yl": {
        "cpu": replace(
            TWEETS_PAPER,
            scale="cpu",
            rounds=30,
            vocabulary=20_000,
            length=30,
            epochs=1,
            learning_rate=0.002,
            period=5,
            attack_epochs=10,
            radius=1.0,
            replacement_radius=1.0,
            decay=1.0,
            test_examples=2000,
            evaluate_every=3,
            checkpoint_every=5,
        ),
        "paper": TWEETS_PAPER,
    },
}
"""The setups at each scale."""


def experiment(setup: str, scale: str, changes: Mapping[str, str]) -> Experiment:
    """Return a setup's experiment with fields changed by text values.

    ``defense.KEY`` sets a setting of the defense; an unknown key is an error with a suggestion.
    ``malicious`` is the share of all clients that attacks whenever it is drawn: short for a
    fixed pool of that size.
    """
    if setup not in SETUPS:
        raise SettingsError(f"no setup is called {setup!r}{suggest(setup, SETUPS)}")
    check_choice("scale", scale, ("cpu", "paper"))
    plain = {key: text for key, text in changes.items() if not key.startswith("defense.")}
    settings = {
        key.removeprefix("defense."): text
        for key, text in changes.items()
        if key.startswith("defense.")
    }
    base = SETUPS[setup][scale]
    share = plain.pop("malicious", None)
    values = parse(Experiment, plain)
    if share is not None:
        values |= _pool(share, values, values.get("clients", base.clients))
    return dataclasses.replace(base, **values, defense_settings=settings)


def _pool(text: str, values: Mapping[str, object], clients: int) -> dict[str, object]:
    """Return the fixed pool that a share of malicious clients stands for."""
    if twice := sorted({"schedule", "pool"} & set(values)):
        raise SettingsError(f"malicious sets {twice[0]} already: give one of them")
    try:
        share = float(text)
    except ValueError as error:
        raise SettingsError(f"malicious must be a number, got {text!r}") from error
    check_float("malicious", share, above=0, maximum=1)
    return {"schedule": "fixed-pool", "pool": max(1, round(share * clients))}
