"""The folder of a run: what its files are called, and its rounds read back."""

import json
from pathlib import Path

from datadefense.simulation.rounds import RoundRecord

CONFIG, ROUNDS, SUMMARY = "config.toml", "rounds.jsonl", "summary.json"
FLOOR, GALLERY, REPORT = "floor.json", "gallery.json", "report.html"
CHECKPOINT, PREVIOUS = "checkpoint.safetensors", "checkpoint.previous.safetensors"


def read_rounds(folder: Path) -> list[RoundRecord]:
    """Read the rounds of a run; a last line that was cut off is left out."""
    records: list[RoundRecord] = []
    for line in (folder / ROUNDS).read_text(encoding="utf-8").splitlines():
        try:
            records.append(RoundRecord(**json.loads(line)))
        except (json.JSONDecodeError, TypeError):
            break
    return records
