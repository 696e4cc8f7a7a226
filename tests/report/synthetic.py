"""Folders of runs that were never run: as large, as odd and as hostile as a test wants them."""

import dataclasses
from pathlib import Path

import numpy as np
import torch
from tests.records import record_of

from datadefense import DefenseSet, Examples
from datadefense.core.detector import DetectorRecord
from datadefense.core.reasons import Reason
from datadefense.defense_sets.preview import gallery_of, write_gallery
from datadefense.runs.config import write_toml
from datadefense.runs.configure import configure
from datadefense.runs.round_lines import round_line

HOSTILE = '"><img src=x onerror="document.body.id=1"></script><script>alert(1)//'
FAULTS = ("worse_on_clean", "learned_poison", "moved_far")


@dataclasses.dataclass(frozen=True)
class Size:
    rounds: int = 12
    clients: int = 6
    examples: int = 40
    attack_every: int = 5
    evaluate_every: int = 1


def records_of(size: Size, *, defense: str = "datadefense", hostile: bool = False):
    """Return rounds that look like those of a defense; the last fifth of the set is poisoned."""
    rng = np.random.default_rng(0)
    poisoned = np.arange(size.examples) >= size.examples - size.examples // 5
    base = np.where(poisoned, 0.9, 0.1) + rng.normal(0, 0.05, size.examples)
    records = []
    for index in range(1, size.rounds + 1):
        attacked = (index - 1) % size.attack_every == 0
        clients = [int(one) for one in rng.choice(1000, size.clients, replace=False)]
        evil = HOSTILE if hostile else "attacker"
        if attacked:
            clients[size.clients // 2] = evil
        faults = np.maximum(0, rng.normal(0, 0.3, (size.clients, 3)))
        if attacked:
            faults[size.clients // 2] = (4, 0.1, 9)
        weights = np.maximum(0, 1 - faults @ (0.3, 1.0, 0.3))
        weights = weights / max(weights.sum(), 1e-9)
        report, evidence, reasons, more = {}, {}, None, {}
        if defense == "datadefense":
            base = base + rng.normal(0, 0.01, size.examples)
            gamma = (base - base.min()) / (base.max() - base.min())
            worst = (faults * (0.3, 1.0, 0.3)).argmax(1)
            reasons = [
                Reason(FAULTS[k], row[k], text=HOSTILE if hostile else "") if row[k] > 0 else None
                for row, k in zip(faults.tolist(), worst, strict=True)
            ]
            ids = example_ids(size, hostile)
            marked = np.sort(np.argsort(-gamma)[: size.examples // 4]).tolist()
            numbers = [float(f"{score:.4g}") for score in gamma]
            more = {
                "theta": dict(zip(FAULTS, (0.3, 1.0, 0.3), strict=True)),
                "detector": DetectorRecord(
                    dict(zip(ids, numbers, strict=True)), tuple(ids[place] for place in marked)
                ),
            }
            evidence = {name: rng.random(size.clients).tolist() for name in ("loss", "distance")}
            evidence |= {name: faults[:, k].tolist() for k, name in enumerate(FAULTS)}
        if hostile:
            report["held"] = HOSTILE
        evaluated = index % size.evaluate_every == 0 or index == size.rounds
        records.append(
            record_of(
                index,
                clients,
                [evil] if attacked else [],
                None if defense == "median" else weights.tolist(),
                evidence=evidence,
                reasons=reasons,
                rejected=[(HOSTILE, HOSTILE)] if hostile else [],
                report=report,
                ma_percent=float(80 + 10 * index / size.rounds) if evaluated else None,
                asr_percent=float(rng.uniform(0, 4)) if evaluated else None,
                seconds={"training": 1.0, "attack": 0.5 * attacked, "defense": 0.2},
                **more,
            )
        )
    return records


def example_ids(size: Size, hostile: bool = False) -> tuple[str, ...]:
    return tuple(f"{HOSTILE if hostile else 'x'}{place}" for place in range(size.examples))


def defense_set(size: Size, kind: str = "digits", hostile: bool = False) -> DefenseSet:
    """Return a set with as many examples; the first quarter is known clean."""
    draw, count = torch.Generator().manual_seed(0), size.examples
    if kind == "digits":
        inputs = torch.randn(count, 1, 28, 28, generator=draw)
        inputs[:, :, :6] = inputs[:, :, -6:] = -0.4
    elif kind == "photos":
        coarse = torch.randint(256, (count, 3, 8, 8), generator=draw).float()
        fine = coarse.repeat_interleave(4, 2).repeat_interleave(4, 3)
        noise = 10 * torch.randn(fine.shape, generator=draw)
        inputs = (fine + noise).clamp(0, 255).to(torch.uint8)
    else:
        inputs = torch.randint(5, (count, 8), generator=draw, dtype=torch.int32)
    poisoned = count // 5
    return DefenseSet(
        Examples(inputs, torch.arange(count) % 10),
        torch.arange(count) < count // 4,
        torch.zeros(count, 2),
        ids=example_ids(size, hostile),
        provenance=("clean",) * (count - poisoned) + ("poisoned",) * poisoned,
    )


def write_run(
    folder: Path,
    size: Size | None = None,
    *,
    defense: str = "datadefense",
    kind: str = "digits",
    hostile: bool = False,
) -> Path:
    """Write a run's folder and return it; there is no summary, but all that one is made of."""
    size = size or Size()
    folder.mkdir(parents=True)
    records = records_of(size, defense=defense, hostile=hostile)
    (folder / "rounds.jsonl").write_text("".join(map(round_line, records)))
    changes = {
        "defense": defense,
        "rounds": size.rounds,
        "clients": 1000,
        "clients_per_round": size.clients,
        "evaluate_every": size.evaluate_every,
    }
    configured = configure(
        "digits-edge", "cpu", {key: str(value) for key, value in changes.items()}
    )
    (folder / "config.toml").write_text(write_toml(configured))
    (folder / "floor.json").write_text('{"asr_percent": 3.0, "ma_percent": 89.9}')
    if defense == "datadefense":
        write_gallery(folder / "gallery.json", gallery_of(defense_set(size, kind, hostile)))
    return folder
