"""Studies of holding: ordinary poisoners, patient attackers, a set without poison, each part."""

from collections.abc import Iterator

from datadefense.reproduction.paper_studies import LEARNED
from datadefense.reproduction.study import Point, Study, point_of

DEFAULT = "datadefense"
RULES = ("fedavg", "multi-krum", "median", "fltrust", LEARNED, DEFAULT)
"""No defense, two statistics, trust in clean data, the former default, the default."""
LONG = {"rounds": "100", "evaluate_every": "5", "checkpoint_every": "25"}


def _shares(malicious: str, poison_share: str) -> dict[str, str]:
    return {"malicious": malicious, "poison_share": poison_share, "attack": "data-poisoning"}


ORDINARY = {
    ("10 %", "20 %"): _shares("0.1", "0.2"),
    ("20 %", "10 %"): _shares("0.2", "0.1"),
    ("20 %", "20 %"): _shares("0.2", "0.2"),
    ("20 %", "50 %"): _shares("0.2", "0.5"),
    ("40 %", "20 %"): _shares("0.4", "0.2"),
}
"""Malicious clients, and the share of their examples that is poisoned."""
PAPER_SETUPS = (
    "cifar10-trigger",
    "cifar10-southwest",
    "cifar10-label-flip",
    "cifar100-trigger",
    "emnist-ardis",
    "sentiment-yl",
)
VIEWS = {
    "cifar10-trigger": ("same", "recoloured", "larger", "corner", "triggers", "relabelled-any"),
    "cifar10-southwest": ("same", "relabelled", "relabelled-any"),
    "digits-edge": ("same", "relabelled", "relabelled-any"),
}
"""What the server holds in place of the attackers' poison."""


def _poisoners(scale: str) -> Iterator[Point]:
    for (malicious, poisoned), changes in ORDINARY.items():
        for defense in RULES:
            labels = ("digits-edge", malicious, poisoned, defense)
            yield point_of(scale, labels, "digits-edge", {**LONG, **changes, "defense": defense})
    for words, share in (("10 %", "0.1"), ("20 %", "0.2"), ("40 %", "0.4")):
        labels = ("digits-edge", words, "-", "attackers absent")
        changes = {**LONG, "attack": "absent", "malicious": share}
        yield point_of(scale, labels, "digits-edge", changes)
    for setup in PAPER_SETUPS:
        for defense in RULES:
            changes = {**ORDINARY["20 %", "20 %"], "rounds": "45", "defense": defense}
            yield point_of(scale, (setup, "20 %", "20 %", defense), setup, changes)


def _patient(scale: str) -> Iterator[Point]:
    for words, malicious in (("20 %", "0.2"), ("40 %", "0.4")):
        for tolerance in ("0.2", "0.4"):
            for defense in RULES:
                changes = {"attack": "adaptive", "malicious": malicious, "tolerance": tolerance}
                labels = (words, tolerance, defense)
                yield point_of(
                    scale, labels, "digits-edge", {**LONG, **changes, "defense": defense}
                )


def _no_poison(scale: str) -> Iterator[Point]:
    for words, changes in {
        "nobody": {"attack": "none"},
        "pgd, one in every round": {"attack": "pgd", "period": "1"},
        "data-poisoning, 20 % of clients": ORDINARY["20 %", "20 %"],
    }.items():
        for defense in ("fedavg", "krum", "bulyan", "trimmed-mean", "rfa", *RULES[1:]):
            of_run = {"server_poison": "0", **changes, "defense": defense}
            yield point_of(scale, (words, defense), "digits-edge", of_run)


def _heterogeneous(scale: str) -> Iterator[Point]:
    for alpha in ("0.5", "0.1", "0.05"):
        for attack, changes in {
            "none": {"attack": "none"},
            "data-poisoning": ORDINARY["20 %", "20 %"],
        }.items():
            for defense in ("fedavg", "multi-krum", DEFAULT):
                of_run = {**LONG, "alpha": alpha, **changes, "defense": defense}
                yield point_of(scale, (alpha, attack, defense), "digits-edge", of_run)


def _oracle(scale: str) -> Iterator[Point]:
    for knowledge in ("everything", "rule", "nothing"):
        for defense in ("fedavg", "krum", *RULES[1:]):
            changes = {"attack": "oracle", "malicious": "0.2", "knowledge": knowledge}
            labels = (knowledge, defense)
            yield point_of(scale, labels, "digits-edge", {**changes, "defense": defense})


def _parts(scale: str) -> Iterator[Point]:
    patient = {"attack": "adaptive", "malicious": "0.2", "tolerance": "0.4", **LONG}
    for words, changes in {
        "data-poisoning, 40 % of clients": {**ORDINARY["40 %", "20 %"], **LONG},
        "patient, 20 % of clients": patient,
        "pgd-replacement, 40 % of clients": {"malicious": "0.4"},
        "nobody": {"attack": "none", **LONG},
    }.items():
        for form, setting in {
            "the default": {},
            "without hold": {"defense.slack": "1"},
            "without learned_poison": {"defense.learned_poison": "0"},
            "without moved_far": {"defense.moved_far": "0"},
        }.items():
            of_run = {**changes, "defense": DEFAULT, **setting}
            yield point_of(scale, (words, form), "digits-edge", of_run)


def _unlike(scale: str) -> Iterator[Point]:
    for setup, views in VIEWS.items():
        length = {"rounds": "45"} if setup != "digits-edge" else LONG
        for view in views:
            changes = {**ORDINARY["20 %", "20 %"], **length, "poison_view": view}
            yield point_of(scale, (setup, view), setup, {**changes, "defense": DEFAULT})


def _calm(scale: str) -> Iterator[Point]:
    for defense in ("fedavg", DEFAULT):
        changes = {**LONG, "rounds": "300", "attack": "none", "defense": defense}
        yield point_of(scale, (defense,), "digits-edge", changes)


HOLDING = (
    Study(
        "poisoners",
        "ordinary clients with some poisoned data, unscaled, for many rounds: who stops them?",
        ("setup", "malicious", "poisoned", "defense"),
        _poisoners,
    ),
    Study(
        "patient",
        "attackers who know the rule, take little in a round, and have time?",
        ("malicious", "share of the poison's loss taken off in a round", "defense"),
        _patient,
    ),
    Study(
        "no-poison", "what if the defense set holds no poison?", ("attack", "defense"), _no_poison
    ),
    Study(
        "heterogeneous",
        "clients whose data differ a lot?",
        ("Dirichlet alpha", "attack", "defense"),
        _heterogeneous,
    ),
    Study(
        "unlike",
        "ordinary poisoners whose poison is not in the set: what may stand there instead?",
        ("setup", "the server's poison"),
        _unlike,
    ),
    Study("calm", "300 rounds in which nobody attacks: what does it cost?", ("defense",), _calm),
    Study(
        "oracle",
        "attackers who call the defense: how far towards their backdoor does it let them go?",
        ("they know", "defense"),
        _oracle,
    ),
    Study("parts", "what does each part of the default do?", ("attack", "form"), _parts),
)
"""Studies of what the default promises."""
