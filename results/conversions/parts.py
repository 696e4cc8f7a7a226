"""Once: results of the flat configuration become results of the one with parts.

    python -m results.conversions.parts OLD.jsonl >> results/runs.jsonl

Nothing is run again: a line keeps its figures and its curves, and gets the configuration and the
key that the same run has now. A key of an earlier revision of the code stays one of that revision.
"""

import hashlib
import json
import sys
from itertools import product
from pathlib import Path
from typing import Any

from datadefense.runs.config import Experiment, experiment_of

OLD_DEFAULTS: dict[str, Any] = json.loads(
    Path(__file__).with_name("flat_defaults.json").read_text()
)
ABLATIONS: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("ablations.json").read_text()
)
"""Former classes of ablations, as settings of the learned form."""
OLD_ATTACK_REVISIONS = {"adaptive": 3}
OLD_DEFENSE_REVISIONS = {"datadefense": 5, "datadefense-learned": 3}
FEDERATION = (
    "rounds", "clients", "clients_per_round", "partition", "alpha", "epochs", "batch_size",
    "learning_rate", "decay", "momentum", "weight_decay",
)  # fmt: skip
SERVER = {
    "known_clean": "server_clean", "clean": "defense_clean", "poison": "server_poison",
    "wrong_marks_percent": "wrong_marks_percent", "marked_class": "marked_class",
    "poison_view": "poison_view", "folder": "defense_folder", "digest": "defense_digest",
}  # fmt: skip
OWN_TRAINING = {"epochs": "attack_epochs", "learning_rate": "attack_learning_rate"}
PATIENT = {**OWN_TRAINING, "tolerance": "tolerance", "reach": "reach",
           "project_every": "project_every"}  # fmt: skip
ATTACKS: dict[str, dict[str, str]] = {
    "data-poisoning": {"poison_share": "poison_share"},
    "black-box": OWN_TRAINING,
    "pgd": {**OWN_TRAINING, "radius": "radius", "radius_decay": "radius_decay",
            "project_every": "project_every"},
    "pgd-replacement": {**OWN_TRAINING, "replacement_radius": "replacement_radius",
                        "radius_decay": "radius_decay", "project_every": "project_every"},
    "neurotoxin": OWN_TRAINING,
    "dba": OWN_TRAINING,
    "lie": OWN_TRAINING,
    "constrain-and-scale": OWN_TRAINING,
    "adaptive": PATIENT,
    "drip": {**PATIENT, "slack": "drip_slack"},
    "oracle": {**OWN_TRAINING, "knowledge": "knowledge", "least_weight": "least_weight",
               "longest_step": "longest_step"},
    "idle": OWN_TRAINING,
    "absent": {},
}  # fmt: skip
IMAGES = ("attack_clean", "attack_poison", "overlap", "second_backdoor", "width", "augment")
TASKS: dict[str, tuple[str, ...]] = {
    "digits-edge": ("attack_clean", "attack_poison", "second_backdoor"),
    "cifar10-label-flip": IMAGES,
    "cifar10-southwest": IMAGES,
    "cifar10-trigger": (*IMAGES, "trigger_size", "trigger_weight"),
    "cifar100-trigger": (*IMAGES, "trigger_size", "trigger_weight"),
    "emnist-ardis": ("attack_clean", "attack_poison", "overlap", "second_backdoor", "dataset",
                     "sevens"),
    "sentiment-yl": ("attack_clean", "attack_poison", "overlap", "vocabulary", "length",
                     "director_words"),
}  # fmt: skip


def converted(config: dict[str, Any]) -> Experiment:
    """Return the experiment of a flat configuration, given by what it changes."""
    old = {**OLD_DEFAULTS, **config}
    defense, settings = old["defense"], dict(old["defense_settings"])
    if ":" in defense:
        ablation = ABLATIONS[defense.partition(":")[2]]
        defense, settings = ablation["defense"], {**ablation["settings"], **settings}
    document: dict[str, Any] = {
        "seed": old["seed"],
        "scale": old["scale"],
        "task": {"name": old["setup"], **{name: old[name] for name in TASKS[old["setup"]]}},
        "warm": {name: old[f"warm_{name}"] for name in ("accuracy_percent", "learning_rate",
                                                        "batch_size", "seed")},
        "federation": {name: old[name] for name in FEDERATION},
        "defense": {"name": defense, **settings},
        "server": {new: old[name] for new, name in SERVER.items() if old[name] is not None},
        "evaluation": {name: old[name] for name in ("test_examples", "evaluate_every",
                                                    "checkpoint_every")},
        "attack": {"name": old["attack"]},
    }  # fmt: skip
    if old["attack"] != "none":
        wanted = ATTACKS[old["attack"]]
        document["attack"] |= {new: old[name] for new, name in wanted.items()}
        document["schedule"] = _schedule(old)
    return experiment_of(document)


def _schedule(old: dict[str, Any]) -> dict[str, Any]:
    last = {} if old["last_attack"] is None else {"last": old["last_attack"]}
    if old["schedule"] == "fixed-pool":
        return {"name": "fixed-pool", "share": old["pool"] / old["clients"], **last}
    return {
        "name": "fixed-frequency",
        "period": old["period"],
        "first": old["first_attack"],
        "attackers": old["attackers"],
        **last,
    }


def revision_of(key: str, config: dict[str, Any]) -> list[int]:
    """Return the revisions of engine, attack and defense that an old key was made with."""
    attack, defense = config.get("attack", "pgd-replacement"), config.get("defense", "fedavg")
    base = "datadefense-learned" if ":" in defense else defense
    now = (1, OLD_ATTACK_REVISIONS.get(attack, 1), OLD_DEFENSE_REVISIONS.get(base, 1))
    for numbers in product(*(range(number, 0, -1) for number in now)):
        text = json.dumps([config, list(numbers)], sort_keys=True)
        if hashlib.sha256(text.encode()).hexdigest()[:16] == key:
            return list(numbers)
    raise SystemExit(f"{key} is not the key of {config}")


def main(path: Path) -> None:
    """Print the converted lines of an old store."""
    for line in path.read_text(encoding="utf-8").splitlines():
        result = json.loads(line)
        experiment = converted(result["config"])
        hashed = {k: v for k, v in result["config"].items() if k != "defense_folder"}
        numbers = revision_of(result["key"], hashed)
        result["key"] = experiment.key_of(numbers)
        result["config"] = experiment.changes()
        result["summary"]["defense"] = experiment.name_of("defense")
        sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
