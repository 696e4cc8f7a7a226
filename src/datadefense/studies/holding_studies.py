"""Studies of holding: ordinary poisoners, patient attackers, a set without poison, each part."""

from collections.abc import Iterator

from datadefense.studies.paper_studies import LEARNED, STAND_IN
from datadefense.studies.study import Point, Study, point_of

DEFAULT = "datadefense"
RULES = ("fedavg", "multi-krum", "median", "fltrust", LEARNED, DEFAULT)
"""No defense, two statistics, trust in clean data, the former default, the default."""
LONG = {"rounds": "100", "evaluate_every": "5", "checkpoint_every": "25"}
LONGEST = {"rounds": "200", "evaluate_every": "10", "checkpoint_every": "25"}


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
            stand_in = STAND_IN if setup == "emnist-ardis" else {}
            changes = {**ORDINARY["20 %", "20 %"], **stand_in, "rounds": "45", "defense": defense}
            yield point_of(scale, (setup, "20 %", "20 %", defense), setup, changes)


def _drip(scale: str) -> Iterator[Point]:
    cases = [
        ("0.1", "1.5"),
        ("0.2", "1.5"),
        ("0.4", "1.5"),
        ("0.6", "1.5"),
        ("0.4", "1"),
        ("0.4", "2"),
    ]
    for words, malicious in (("20 %", "0.2"), ("40 %", "0.4")):
        for knows, slack in (("faults", "1"), ("faults and hold", "0.01")):
            for tolerance, reach in cases if knows == "faults" else cases[2:3]:
                for defense in RULES:
                    changes = {
                        "attack": "drip",
                        "malicious": malicious,
                        "tolerance": tolerance,
                        "reach": reach,
                        "attack.slack": slack,
                        "defense": defense,
                    }
                    labels = (words, knows, tolerance, reach, defense)
                    yield point_of(scale, labels, "digits-edge", {**LONGEST, **changes})


def _no_poison(scale: str) -> Iterator[Point]:
    for words, changes in {
        "nobody": {"attack": "none"},
        "pgd, one in every round": {"attack": "pgd", "period": "1"},
        "data-poisoning, 20 % of clients": ORDINARY["20 %", "20 %"],
    }.items():
        for defense in ("fedavg", "krum", "bulyan", "trimmed-mean", "rfa", *RULES[1:]):
            of_run = {"server.poison": "0", **changes, "defense": defense}
            yield point_of(scale, (words, defense), "digits-edge", of_run)
        as_long = {"server.poison": "0", **changes, "defense": "fltrust", "defense.epochs": "2"}
        yield point_of(scale, (words, "fltrust, two passes"), "digits-edge", as_long)


def _heterogeneous(scale: str) -> Iterator[Point]:
    for alpha in ("0.5", "0.1", "0.05"):
        for attack, changes in {
            "none": {"attack": "none"},
            "data-poisoning": ORDINARY["20 %", "20 %"],
        }.items():
            for defense in ("fedavg", "multi-krum", DEFAULT):
                of_run = {**LONG, "alpha": alpha, **changes, "defense": defense}
                yield point_of(scale, (alpha, attack, defense), "digits-edge", of_run)
        absent = {**LONG, "alpha": alpha, "attack": "absent", "malicious": "0.2"}
        yield point_of(scale, (alpha, "attackers absent", "fedavg"), "digits-edge", absent)


def _oracle(scale: str) -> Iterator[Point]:
    for knowledge in ("everything", "rule", "nothing"):
        for defense in ("fedavg", "krum", *RULES[1:]):
            changes = {"attack": "oracle", "malicious": "0.2", "knowledge": knowledge}
            labels = (knowledge, defense)
            yield point_of(scale, labels, "digits-edge", {**changes, "defense": defense})


def _parts(scale: str) -> Iterator[Point]:
    drip = {"attack": "drip", "malicious": "0.2", "tolerance": "0.4", **LONG}
    for words, changes in {
        "data-poisoning, 40 % of clients": {**ORDINARY["40 %", "20 %"], **LONG},
        "drip, 20 % of clients": drip,
        "pgd-replacement, 40 % of clients": {"malicious": "0.4"},
        "nobody": {"attack": "none", **LONG},
    }.items():
        for form, setting in {
            "the default": {},
            "without hold": {"defense.slack": "1"},
            "without corrections": {"defense.corrections": "0"},
            "without known_poison": {"defense.known_poison": "0"},
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


def _poor_sets(scale: str) -> Iterator[Point]:
    for words, changes in {
        "as it is": {},
        "5 % of the marks wrong": {"wrong_marks_percent": "5"},
        "10 % of the marks wrong": {"wrong_marks_percent": "10"},
        "20 marked clean": {"server.known_clean": "20"},
        "20 poisoned": {"server.poison": "20"},
        "10 poisoned": {"server.poison": "10"},
        "100 clean (20 marked), 20 poisoned": {
            "server.clean": "100",
            "server.known_clean": "20",
            "server.poison": "20",
        },
        "two backdoors, both in the set": {"second_backdoor": "known"},
        "two backdoors, one in the set": {"second_backdoor": "unknown"},
    }.items():
        of_run = {**ORDINARY["20 %", "20 %"], **LONG, **changes, "defense": DEFAULT}
        yield point_of(scale, (words,), "digits-edge", of_run)


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
        "drip",
        "attackers who know the rule, take little in a round, and have 200 rounds?",
        ("malicious", "they know", "loss taken off in a round", "reach", "defense"),
        _drip,
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
    Study(
        "poor-sets",
        "ordinary poisoners, and a set that is small, wrongly marked or knows one backdoor of two?",
        ("defense set",),
        _poor_sets,
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
