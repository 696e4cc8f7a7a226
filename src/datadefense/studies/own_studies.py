"""Our own studies: do the attacks work, does the default hold, and what does it need?"""

from collections.abc import Iterator

from datadefense.studies.paper_studies import COMPARED, LEARNED, SHARES, STAND_IN, sized
from datadefense.studies.study import Point, Study, point_of
from datadefense.tasks import TASKS

REAL = tuple(setup for setup in TASKS if setup != "emnist-ardis")
"""Setups whose data we have."""
BOTH = ("pgd-replacement", "pgd")
STRANGE = 56
"""Strange sevens that digits-edge has for the server."""
RARE = "every fifth round"
DIGITS = {
    "every round": {"period": "1"},
    "20 % of clients": {"malicious": "0.2"},
    "40 % of clients": {"malicious": "0.4"},
}
UNBOUNDED = "1e9"
"""A limit that nothing reaches."""
FIFTH = {"malicious": "0.2"}
"""A fifth of CIFAR's 200 clients, the largest pool of the paper's Table 5."""


def _attacks(scale: str) -> Iterator[Point]:
    for setup in REAL:
        for attack in ("none", "pgd", "pgd-replacement"):
            yield point_of(scale, (setup, attack), setup, {"attack": attack})


def _targets(scale: str) -> Iterator[Point]:
    cases: list[tuple[str, str, str, dict[str, str]]] = [
        (setup, attack, RARE, {}) for setup in REAL for attack in BOTH
    ]
    cases += [("emnist-ardis", attack, RARE, STAND_IN) for attack in BOTH]
    cases += [
        ("cifar10-trigger", attack, words, changes)
        for attack in BOTH
        for words, changes in (("every round", {"period": "1"}), ("20 % of clients", FIFTH))
    ]
    cases += [
        ("digits-edge", attack, words, changes)
        for attack in (*BOTH, "adaptive")
        for words, changes in DIGITS.items()
    ]
    cases += [("digits-edge", "adaptive", RARE, {}), ("cifar10-trigger", "adaptive", RARE, {})]
    cases += [("digits-edge", "none", "never", {})]
    for setup, attack, words, changes in cases:
        for defense in COMPARED:
            labels = (setup, attack, words, defense)
            yield point_of(scale, labels, setup, {"attack": attack, "defense": defense, **changes})


def _told(scale: str) -> Iterator[Point]:
    """As in `targets`, where statistics expect one attacker in a round, the usual setting."""
    for setup, words, changes, expected in (
        ("digits-edge", "20 % of clients", DIGITS["20 % of clients"], (2, 4)),
        ("digits-edge", "40 % of clients", DIGITS["40 % of clients"], (4,)),
        ("cifar10-trigger", "20 % of clients", FIFTH, (4,)),
    ):
        for attack in BOTH if setup == "digits-edge" else BOTH[:1]:
            for defense in ("krum", "multi-krum", "trimmed-mean"):
                for count in (1, *expected):
                    labels = (setup, attack, words, defense, str(count))
                    of_run = {"attack": attack, "defense": defense, **changes}
                    if count > 1:
                        of_run["defense.num_malicious"] = str(count)
                    yield point_of(scale, labels, setup, of_run)


def _idle(scale: str) -> Iterator[Point]:
    for words in ("20 % of clients", "40 % of clients"):
        for defense in (
            "fedavg",
            "krum",
            "multi-krum",
            "median",
            "fltrust",
            LEARNED,
            "datadefense",
        ):
            changes = {"attack": "idle", "defense": defense, **DIGITS[words]}
            yield point_of(scale, (words, defense), "digits-edge", changes)


def _daring(scale: str) -> Iterator[Point]:
    for dared in ("0", "0.1", "0.2", "0.5", "1"):
        for defense in ("fedavg", "multi-krum", "fltrust", LEARNED, "datadefense"):
            changes = {"attack": "adaptive", "defense": defense, "tolerance": dared, "period": 1}
            yield point_of(scale, (dared, defense), "digits-edge", changes)


def _size(scale: str) -> Iterator[Point]:
    for size in (5, 10, 50, 100, 456):
        for percent in (5, 10, 20):
            poison = min(size // 5, STRANGE)
            changes = sized(size, poison, max(1, size * percent // 100))
            quiet = {"defense": LEARNED, "attack": "pgd", **changes}
            yield point_of(scale, (str(size), f"{percent} %"), "digits-edge", quiet)


def _marks(scale: str) -> Iterator[Point]:
    kinds: dict[str, dict[str, str | int]] = {
        **{f"{share} % wrong": {"wrong_marks_percent": share} for share in (0, 5, 10, 15)},
        "all of one class": {"marked_class": 3, "server.known_clean": 25},
        "no poison": {"server.poison": 0},
        "no poison and beta auto": {"server.poison": 0, "defense.beta": "auto"},
    }
    for words, changes in kinds.items():
        for attack in ("pgd", "none"):
            chosen = {"defense": LEARNED, "attack": attack, **changes}
            yield point_of(scale, (words, attack), "digits-edge", chosen)


def _share(scale: str) -> Iterator[Point]:
    for share in SHARES:
        for words, beta in (("0.2", "0.2"), ("exact", share), ("auto", "auto")):
            changes = sized(2 * STRANGE, round(float(share) * 2 * STRANGE), 22)
            quiet = {"defense": LEARNED, "attack": "pgd", "defense.beta": beta, **changes}
            yield point_of(scale, (share, words), "digits-edge", quiet)


def _looks(scale: str) -> Iterator[Point]:
    for setup, views in (
        ("cifar10-trigger", ("same", "recoloured", "larger", "corner")),
        ("cifar10-southwest", ("same", "recoloured")),
    ):
        for view in views:
            changes = {"defense": LEARNED, "poison_view": view}
            yield point_of(scale, (setup, view), setup, changes)


def _several(scale: str) -> Iterator[Point]:
    for setup in ("digits-edge", "cifar10-trigger"):
        for second in ("none", "known", "unknown"):
            for defense in ("fedavg", "multi-krum", LEARNED, "datadefense"):
                labels = (setup, second, defense)
                changes = {"second_backdoor": second, "defense": defense}
                yield point_of(scale, labels, setup, changes)


def _loudness(scale: str) -> Iterator[Point]:
    for radius in ("1", "0.5", "0.25", "0.1"):
        for defense in ("fedavg", "multi-krum", "median", "fltrust", LEARNED, "datadefense"):
            changes = {"replacement_radius": radius, "defense": defense}
            yield point_of(scale, (radius, defense), "cifar10-trigger", changes)


def _ablation(scale: str) -> Iterator[Point]:
    wide = {"worse_on_clean": "10", "learned_poison": "10", "moved_far": "10"}
    forms: dict[str, dict[str, str]] = {
        "as it is": {},
        "theta stays as drawn": {"defense.theta_rate": "0"},
        "theta in a wide box": _theta_up_to(wide),
        "psi stays after its start": {"defense.psi_steps": "0"},
        "30 steps of psi a round": {"defense.psi_steps": "30"},
        "margins of the present model only": {"defense.first_share": "0"},
        "margins of the first model only": {"defense.first_share": "1"},
        "consistency only at the start": {"defense.consistency": "0"},
        "no excuses": {"defense.excuse_clean": "0", "defense.excuse_poison": "0"},
        "excuses without a limit": {
            "defense.excuse_clean": UNBOUNDED,
            "defense.excuse_poison": UNBOUNDED,
        },
        "rises make up for falls": {"defense.most_rise": UNBOUNDED},
        "without worse_on_clean": _theta_up_to({"worse_on_clean": "0"}),
        "without learned_poison": _theta_up_to({"learned_poison": "0"}),
        "without moved_far": _theta_up_to({"moved_far": "0"}),
        "beta estimated": {"defense.beta": "auto"},
        "the paper's Algorithm 1": {"defense": "datadefense-paper"},
        "the paper's Algorithm 2": {"defense": "datadefense-appendix"},
        "the authors' code": {"defense": "datadefense-released"},
    }
    for setup, words, changes in (
        ("digits-edge", "pgd-replacement every fifth round", {}),
        ("digits-edge", "pgd every round", {"attack": "pgd", "period": "1"}),
        ("digits-edge", "pgd-replacement 40 % of clients", DIGITS["40 % of clients"]),
        ("cifar10-trigger", "pgd-replacement every fifth round", {}),
    ):
        for form, its in forms.items():
            chosen = {"defense": LEARNED, **changes, **its}
            yield point_of(scale, (setup, words, form), setup, chosen)


def _theta_up_to(greatest: dict[str, str]) -> dict[str, str]:
    """Return the settings that let theta of some penalties be anything from 0 up to a value."""
    lows = {f"defense.{name}_low": "0" for name in greatest}
    return lows | {f"defense.{name}_high": value for name, value in greatest.items()}


OWN = (
    Study("attacks", "do the attacks work undefended?", ("setup", "attack"), _attacks),
    Study("targets", "do the defenses hold?", ("setup", "attack", "case", "defense"), _targets),
    Study(
        "told",
        "what if statistics are told of more attackers in a round?",
        ("setup", "attack", "case", "defense", "attackers it expects"),
        _told,
    ),
    Study("idle", "what if clients only hold the others back?", ("case", "defense"), _idle),
    Study(
        "daring",
        "how much may an attacker who knows the rule dare (every round)?",
        ("share of the poison's loss it takes off", "defense"),
        _daring,
    ),
    Study(
        "loudness",
        "from which size of an update on do statistics see it (cifar10-trigger)?",
        ("radius before scaling", "defense"),
        _loudness,
    ),
    Study("ablation", "what does each part do?", ("setup", "attack", "form"), _ablation),
    Study("size", "how many examples, how many marks?", ("size", "known clean"), _size),
    Study("marks", "what if the marks are poor?", ("marks", "attack"), _marks),
    Study("share", "what if beta is not the poison's share?", ("share", "beta"), _share),
    Study("looks", "what if the poison found is not the attacker's?", ("setup", "look"), _looks),
    Study("several", "two backdoors at once?", ("setup", "second", "defense"), _several),
)
"""Studies that the paper does not have."""
