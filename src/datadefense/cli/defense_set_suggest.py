"""``datadefense defense-set suggest``: a defense set for a server that has seen no poison."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch

from datadefense.cli.compared_models import ModelPlaces
from datadefense.cli.defense_set_parts import SHARE, SIZE, fresh, fresh_rows, join
from datadefense.cli.opened_task import Chosen, open_task, say, tally
from datadefense.cli.suggest_methods import METHODS, Method, SuggestionContext
from datadefense.core.examples import Examples
from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError, check_choice, check_float, check_int
from datadefense.defense_sets.checks import classes, held_out
from datadefense.defense_sets.folder import refuse_existing, write_defense_folder
from datadefense.defense_sets.suggested_poison import spare_examples
from datadefense.defense_sets.suggestions.inversion import Search


@dataclass(frozen=True, slots=True)
class SuggestOptions:
    """What is to be suggested; None leaves it to us."""

    method: str
    sources: tuple[int, ...] = ()
    targets: tuple[int, ...] = ()
    size: int | None = None
    share: float = SHARE
    known_clean: int | None = None
    places: ModelPlaces = ModelPlaces()
    inputs: Path | None = None
    steps: int | None = None

    def check(self) -> Method:
        """Return the method, or raise if it has no use for an option that was given."""
        check_choice("method", self.method, METHODS)
        method = METHODS[self.method]
        given = {
            "--suspect": (self.places.suspect is not None, method.models),
            "--trusted": (self.places.trusted is not None, method.models),
            "--inputs": (self.inputs is not None, method.inputs),
            "--steps": (self.steps is not None, method.search),
        }
        if odd := [name for name, (there, used) in given.items() if there and not used]:
            raise SettingsError(f"{odd[0]} does not go with --method {self.method}")
        check_float("share", self.share, above=0, below=1)
        check_int("known-clean", self.known_clean or 0, 0)
        check_int("size", SIZE if self.size is None else self.size, 2)
        return method


def suggest(out: Path, chosen: Chosen, options: SuggestOptions) -> None:
    """Write a set of clean examples, some of them marked, and candidates, which are not."""
    method = options.check()
    refuse_existing(out)
    opened = open_task(chosen)
    data, seed = opened.data, opened.experiment.seed
    labels = range(classes(data))
    for name, given in (("from", options.sources), ("to", options.targets)):
        for label in given:
            check_float(name, label, minimum=0, maximum=labels[-1])
    held = list(held_out(data).values())
    clean = fresh(data.server_clean, held, data)
    size = (
        min(SIZE, int(len(clean) / (1 - options.share))) if options.size is None else options.size
    )
    count = max(1, round(options.share * size))
    check_float("size less its candidates", size - count, minimum=1, maximum=len(clean))
    spare = spare_examples(data, seed)
    made = method.run(
        SuggestionContext(
            opened=opened,
            spare=Examples(data.as_stored(spare.inputs), spare.labels),
            sources=options.sources or None,
            targets=options.targets or tuple(labels),
            count=count,
            at_most=options.size is None,
            places=options.places,
            inputs=options.inputs,
            draw=generator(seed, "suggested", options.method),
            search=Search() if options.steps is None else Search(steps=options.steps),
        )
    )
    beside = clean.take(torch.arange(size - count))
    rows = fresh_rows(made.examples.inputs, [*held, beside.inputs])
    if not len(rows):
        raise SettingsError("every candidate is an example of the test or of the clean ones")
    candidates = made.examples.take(rows)
    source = join(
        beside,
        candidates,
        tuple(f"suggested: {options.method}, {made.origins[row]}" for row in rows.tolist()),
        known=options.known_clean,
        trusted=str(chosen.task),
        order=torch.arange(len(beside) + len(rows)),
    )
    write_defense_folder(source, out)
    counts = sorted(Counter(candidates.labels.tolist()).items())
    shown = ", ".join(f"{many} labelled {label}" for label, many in counts)
    say(f"wrote {out}: {tally(source)}, {len(rows)} suggested by {options.method} ({shown})")
