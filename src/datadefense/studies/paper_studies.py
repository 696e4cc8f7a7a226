"""The paper's tables and figures as studies, each at the paper's scale and at ours for 2 cores."""

from collections.abc import Iterator, Mapping

from datadefense.runs.configure import configure
from datadefense.studies.study import Point, Study, point_of

SIX = (
    "cifar10-label-flip",
    "cifar10-southwest",
    "cifar10-trigger",
    "cifar100-trigger",
    "emnist-ardis",
    "sentiment-yl",
)
TRIGGER, SOUTHWEST = "cifar10-trigger", "cifar10-southwest"
STAND_IN = {"dataset": "mnist", "sevens": "uci", "server.poison": "50"}
"""At cpu scale EMNIST and ARDIS, which few have, give way to MNIST and the embedded UCI sevens."""
LEARNED = "datadefense-learned"
"""What the paper's own studies are made with: detector and importance are learned, as there."""
COMPARED = (
    "fedavg",
    "krum",
    "multi-krum",
    "bulyan",
    "trimmed-mean",
    "median",
    "rfa",
    "ndc",
    "ndc-adaptive",
    "weak-dp",
    "sparsefed",
    "fltrust",
    "datadefense",
    "datadefense-learned",
    "datadefense-paper",
    "datadefense-appendix",
    "datadefense-released",
)
"""Defenses that studies of all of them run; one that is registered later is not run by itself."""
SHARES = ("0.01", "0.05", "0.1", "0.2", "0.3", "0.5")


def _point(
    scale: str, labels: tuple[str, ...], setup: str, changes: Mapping[str, str | int]
) -> Point:
    stand_in = STAND_IN if (setup, scale) == ("emnist-ardis", "cpu") else {}
    return point_of(scale, labels, setup, {"defense": LEARNED, **stand_in, **changes})


def _table1(scale: str) -> Iterator[Point]:
    for setup in SIX:
        for defense in COMPARED:
            yield _point(scale, (setup, defense), setup, {"defense": defense})


def _non_iid(scale: str) -> Iterator[Point]:
    for alpha in ("0.1", "0.5", "1", "10", "100", "1000"):
        for defense in ("sparsefed", LEARNED):
            changes: dict[str, str | int] = {"alpha": alpha, "defense": defense}
            if scale == "paper":
                changes["rounds"] = 500
            yield _point(scale, (alpha, defense), TRIGGER, changes)


def sized(size: int, poison: int, known: int) -> dict[str, str | int]:
    """Return the changes that make a defense set of so many examples."""
    return {
        "server.clean": size - poison,
        "server.poison": poison,
        "server.known_clean": known,
    }


def _defense_size(scale: str) -> Iterator[Point]:
    for setup in (SOUTHWEST, TRIGGER, "emnist-ardis"):
        for size in (500, 100, 50, 5):
            poison = size // 5
            if setup == "emnist-ardis" and scale == "cpu":
                poison = min(poison, int(STAND_IN["server.poison"]))
            changes = sized(min(size, 400 + poison), poison, size // 5)
            yield _point(scale, (setup, str(size)), setup, changes)


def _sensitivity(scale: str) -> Iterator[Point]:
    for share in (0, 5, 10, 15):
        changes = {"wrong_marks_percent": share}
        yield _point(scale, ("wrongly marked", f"{share} %"), TRIGGER, changes)
    for beta in ("0.1", "0.2", "0.3", "0.5"):
        yield _point(scale, ("beta", beta), TRIGGER, {"defense.beta": beta})


def _robustness(scale: str) -> Iterator[Point]:
    for size in ("8", "10", "12", "14"):
        yield _point(scale, ("trigger size", size), TRIGGER, {"trigger_size": size})
    for weight in ("0.8", "0.6", "0.4", "0.2"):
        yield _point(scale, ("transparency", weight), TRIGGER, {"trigger_weight": weight})
    for pool in ("2", "10", "20", "40"):
        changes = {"malicious": str(int(pool) / 200)}
        yield _point(scale, ("fixed pool", pool), TRIGGER, changes)


def _participants(scale: str) -> Iterator[Point]:
    for number in ("10", "20", "40"):
        yield _point(scale, (number,), TRIGGER, {"clients_per_round": number})


def _clean_fraction(scale: str) -> Iterator[Point]:
    for percent in (5, 10, 15, 20):
        yield _point(scale, (f"{percent} %",), TRIGGER, {"server.known_clean": 5 * percent})


def _poison_fraction(scale: str) -> Iterator[Point]:
    for setup in (TRIGGER, SOUTHWEST):
        for share in SHARES:
            poison = round(500 * float(share))
            size = min(500, 400 + poison)
            changes = {**sized(size, poison, 100), "defense.beta": share}
            yield _point(scale, (setup, share), setup, changes)


def _curves(setup: str, scale: str) -> Iterator[Point]:
    for attack in ("pgd", "pgd-replacement"):
        for defense in ("fedavg", "rfa", "ndc", "ndc-adaptive", "sparsefed", LEARNED):
            wrong = 15 if defense == LEARNED else 0
            changes: dict[str, str | int] = {"attack": attack, "defense": defense}
            changes["wrong_marks_percent"] = wrong
            yield _point(scale, (attack, defense), setup, changes)


def _learning(scale: str) -> Iterator[Point]:
    for setup in (SOUTHWEST, TRIGGER):
        for defense in (LEARNED, "datadefense-paper"):
            changes: dict[str, str | int] = {"defense": defense, "wrong_marks_percent": 15}
            yield _point(scale, (setup, defense), setup, changes)


def _halting(scale: str) -> Iterator[Point]:
    """Theta and psi stay after a fifteenth of the rounds, as 100 of the paper's 1,500."""
    rounds = configure(TRIGGER, scale, {}).rounds
    for words, halt in (("never", ""), (f"after round {rounds // 15}", str(rounds // 15))):
        for defense in (LEARNED, "datadefense-paper"):
            changes: dict[str, str | int] = {"trigger_size": 14, "defense": defense}
            if halt:
                changes["defense.halt_after"] = halt
            yield _point(scale, (defense, words), TRIGGER, changes)


def _paper_size(scale: str) -> Iterator[Point]:
    """The paper's federation at its own size, for the 60 rounds that two hours give here."""
    if scale == "paper":
        for defense in ("fedavg", LEARNED):
            changes: dict[str, str | int] = {"defense": defense, "rounds": 60}
            changes |= {"evaluate_every": 5, "checkpoint_every": 5}
            yield _point(scale, ("pgd-replacement", defense), TRIGGER, changes)


PAPER = (
    Study("table1", "the defenses on the six setups", ("setup", "defense"), _table1, "bars"),
    Study("non-iid", "clients whose data differ", ("alpha", "defense"), _non_iid),
    Study("defense-size", "size of the defense set", ("setup", "size"), _defense_size),
    Study("sensitivity", "wrong marks, and beta", ("what", "value"), _sensitivity),
    Study("robustness", "other triggers, fixed pools", ("what", "value"), _robustness),
    Study("participants", "clients in a round", ("clients a round",), _participants),
    Study("clean-fraction", "known clean examples", ("share of D_d",), _clean_fraction),
    Study("poison-fraction", "poison in the defense set", ("setup", "share"), _poison_fraction),
    Study(
        "curves-southwest",
        "accuracy and success by round",
        ("attack", "defense"),
        lambda scale: _curves(SOUTHWEST, scale),
        "by-round",
    ),
    Study(
        "curves-trigger",
        "accuracy and success by round",
        ("attack", "defense"),
        lambda scale: _curves(TRIGGER, scale),
        "by-round",
    ),
    Study(
        "detector",
        "poison that the detector marks, by round",
        ("setup", "defense"),
        _learning,
        "hits",
    ),
    Study(
        "importance",
        "weight of attackers less that of others",
        ("setup", "defense"),
        _learning,
        "gaps",
    ),
    Study(
        "halting",
        "theta and psi stay early",
        ("defense", "halted"),
        _halting,
        "by-round-and-weight",
    ),
    Study(
        "paper-size",
        "60 rounds of the paper's own federation",
        ("attack", "defense"),
        _paper_size,
        "by-round",
    ),
)
"""Studies of the paper."""
