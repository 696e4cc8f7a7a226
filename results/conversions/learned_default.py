"""One-off, run on 2026-11-18: results of the former default get its new name, datadefense-learned.

`datadefense` is another algorithm since then. Figures and curves stay as they were measured; only
the name in the configuration and the summary changes, and with it the key. Run from the repository:
``python results/conversions/learned_default.py``. A second run changes nothing.
"""

import hashlib
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path

OLD, NEW = "datadefense", "datadefense-learned"
STORE = Path(__file__).parents[1] / "runs.jsonl"


def keys(changes: dict[str, object], latest: tuple[int, int, int]) -> Iterator[tuple[str, str]]:
    """Yield the key under the old name and under the new one, for all revisions of the code."""
    plain = {name: value for name, value in changes.items() if name != "defense_folder"}
    for numbers in product(*(range(now, 0, -1) for now in latest)):
        pair = []
        for name in (OLD, NEW):
            text = json.dumps([{**plain, "defense": name}, list(numbers)], sort_keys=True)
            pair.append(hashlib.sha256(text.encode()).hexdigest()[:16])
        yield pair[0], pair[1]


def convert(line: str) -> str:
    """Return the line with the new name, or as it is if it is not of the former default."""
    result = json.loads(line)
    config = result["config"]
    if config.get("defense") != OLD:
        return line
    renamed = [new for old, new in keys(config, (1, 3, 3)) if old == result["key"]]
    if not renamed:
        return line  # of the new default: its revision is 4
    result["key"], config["defense"], result["summary"]["defense"] = renamed[0], NEW, NEW
    return json.dumps(result)


def main() -> None:
    """Rewrite the store in place."""
    lines = STORE.read_text(encoding="utf-8").splitlines()
    STORE.write_text("".join(convert(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
