"""``datadefense defense-set build``: from a task, or from a data set and suspect images."""

from dataclasses import dataclass
from pathlib import Path

import torch

from datadefense.cli.defense_set_parts import SHARE, SIZE, fresh, fresh_rows, join
from datadefense.cli.image_folder import read_images
from datadefense.cli.opened_task import Chosen, open_task, say, tally
from datadefense.core.examples import Examples
from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError, check_float, check_int
from datadefense.data.catalog import find_dataset, load_images
from datadefense.defense_sets.checks import held_out
from datadefense.defense_sets.folder import POISONED, DefenseSetSource, write_defense_folder

CLEAN_BESIDE = 400
"""Clean examples beside suspects: with a hundred of these, the paper's 500."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What a new set should hold; None leaves it to us, or says that it is not asked for."""

    size: int | None = None
    poison_share: float | None = None
    known_clean: int | None = None
    dataset: str | None = None
    suspects: Path | None = None
    label: int | None = None
    clean: int | None = None


def build(out: Path, chosen: Chosen, options: BuildOptions) -> None:
    """Write a new defense set, from a task or from a data set and suspects."""
    if (chosen.task is None) == (options.dataset is None):
        raise SettingsError("give either --task, or --dataset with --suspects and --label")
    kind, foreign = (
        ("--dataset", {"--size": options.size, "--poison-share": options.poison_share})
        if chosen.task is None
        else ("--task", {"--suspects": options.suspects, "--label": options.label,
                         "--clean": options.clean})
    )  # fmt: skip
    if odd := [name for name, value in foreign.items() if value is not None]:
        raise SettingsError(f"{odd[0]} does not go with {kind}")
    check_int("known-clean", options.known_clean or 0, 0)
    make = _from_suspects if chosen.task is None else _from_task
    source = make(chosen, options)
    write_defense_folder(source, out)
    say(f"wrote {out}: {tally(source)}")


def _from_task(chosen: Chosen, options: BuildOptions) -> DefenseSetSource:
    """Take of what the task has for its server, less what models are judged by.

    In the order of the set that a run makes of it, so that a set of the same size is that set:
    clean examples, which were dealt at random, from the first on, and behind them the poison.
    """
    share = SHARE if options.poison_share is None else options.poison_share
    check_float("poison-share", share, minimum=0, below=1)
    check_int("size", SIZE if options.size is None else options.size, 1)
    opened = open_task(chosen)
    held = list(held_out(opened.data).values())
    clean = fresh(opened.data.server_clean, held, opened.data)
    poison = fresh(opened.data.server_poison, [*held, clean.inputs], opened.data)

    def fits(total: int) -> bool:
        return round(share * total) <= len(poison) and total - round(share * total) <= len(clean)

    most = next(filter(fits, range(len(clean) + len(poison), 0, -1)), 0)
    size = min(SIZE, most) if options.size is None else options.size
    if not fits(size):
        raise SettingsError(
            f"size must be <= {most} at poison-share {share:g}, got {size}: {chosen.task} has "
            f"{len(clean)} clean and {len(poison)} poisoned examples for its server"
        )
    draw, bad = generator(opened.experiment.seed, "defense set"), round(share * size)
    return join(
        clean.take(torch.arange(size - bad)),
        poison.take(torch.randperm(len(poison), generator=draw)[:bad].sort().values),
        (POISONED,) * bad,
        known=options.known_clean,
        trusted=str(chosen.task),
        order=torch.arange(size),
    )


def _from_suspects(chosen: Chosen, options: BuildOptions) -> DefenseSetSource:
    """Put suspects beside clean examples of a data set's training part."""
    if options.dataset is None or options.suspects is None or options.label is None:
        raise SettingsError("--dataset needs --suspects and --label")
    check_float(
        "label", options.label, minimum=0, maximum=find_dataset(options.dataset).classes - 1
    )
    train = load_images(options.dataset, chosen.data, "train")
    beside = min(CLEAN_BESIDE, len(train)) if options.clean is None else options.clean
    check_float("clean", beside, minimum=0, maximum=len(train))
    files, images = read_images(options.suspects, train.inputs, options.dataset)
    rows = fresh_rows(images, [])
    suspects = Examples(images[rows], torch.full((len(rows),), options.label))
    origin = tuple(f"{options.suspects.name}/{files[row].name}" for row in rows.tolist())
    draw = generator(chosen.seed, "defense set")
    some = train.take(torch.randperm(len(train), generator=draw)[:beside])
    clean = fresh(some, [images])
    return join(
        clean,
        suspects,
        origin,
        known=options.known_clean,
        trusted=options.dataset,
        order=torch.randperm(len(clean) + len(suspects), generator=draw),
    )
