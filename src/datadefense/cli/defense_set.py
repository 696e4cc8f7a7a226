"""``datadefense defense-set``: build one, look at it, mark what is clean, check it."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from jaxtyping import Float
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from torch import Tensor

from datadefense.cli.opened_setup import Chosen, Opened, as_kept, open_setup, say, tally
from datadefense.data.cache import cache_folder
from datadefense.data.contact_sheet import render
from datadefense.data.content import content_keys, rows_seen_in
from datadefense.data.defense_folder import DefenseSetSource, read_defense_folder
from datadefense.data.errors import DataError
from datadefense.data.marks import write_marks
from datadefense.data.text import Vocabulary
from datadefense.defenses.datadefense import DataDefense
from datadefense.defenses.datadefense.detector import gamma, standardise
from datadefense.experiments.warm_start import warm_start
from datadefense.models.features import penultimate
from datadefense.params import Layout, predictor
from datadefense.server import Server
from datadefense.storage import write_text

FEWEST = 5
"""Known clean examples below which the detector has little to hold on to."""
STRANGEST = 10


def show(folder: Path, chosen: Chosen, out: Path | None) -> None:
    """Print what a set holds and write its contact sheet; with a setup, by gamma."""
    source = read_defense_folder(folder)
    scores: Tensor | None = None
    texts: list[str] | None = None
    if chosen.setup is not None:
        opened = open_setup(chosen)
        inputs = opened.inputs(source, folder)
        for problem in _odd_labels(source, opened.classes()):
            raise DataError(f"{folder}: {problem}")
        scores = _gamma(source, inputs, opened)
        if source.kind == "tokens":
            texts = _in_words(inputs, opened.vocabulary())
    page = out or folder / "sheet.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    write_text(page, render(source, folder, scores, texts))
    _print_classes(source)
    if scores is not None:
        _print_strangest(source, scores)
    say(f"{tally(source)}; wrote {page}")


def mark(folder: Path, ids: list[str], clean: bool, note: str | None) -> None:
    """Change marks."""
    source = read_defense_folder(folder).mark(ids, clean, note)
    write_marks(folder, source.ids, source.known_clean, source.notes)
    state = "known clean" if clean else "not known clean"
    say(f"marked {len(set(ids))} as {state}: {tally(source)}")


def check(folder: Path, chosen: Chosen) -> None:
    """Print what is wrong with a set and what is doubtful; exit with 1 if anything is wrong."""
    source, opened = read_defense_folder(folder), open_setup(chosen)
    kept = as_kept(opened.inputs(source, folder))
    errors, warnings = _doubles(source, kept)
    errors += _odd_labels(source, opened.classes())
    for name, inputs in opened.held_out().items():
        if seen := rows_seen_in(kept, inputs).tolist():
            errors.append(
                f"{len(seen)} of {len(source)} examples are also in the {name} of "
                f"{opened.experiment.setup}, the first is {source.ids[seen[0]]!r}"
            )
    for problem in errors:
        say(f"error: {problem}")
    for doubt in [*warnings, *_doubts(source)]:
        say(f"warning: {doubt}")
    if errors:
        sys.exit(1)
    say(f"ok: {tally(source)}")


def _gamma(source: DefenseSetSource, inputs: Tensor, opened: Opened) -> Float[Tensor, " examples"]:
    """Return gamma as DataDefense has it before the first round of the setup."""
    module = opened.material.module
    layout = Layout.of_module(module)
    with Console().status("warm start") as status:
        start = warm_start(
            opened.experiment,
            opened.material,
            cache_folder(),
            lambda epochs, percent: status.update(
                f"warm start: {percent:.1f} % after {epochs:.1f} epochs"
            ),
        )
    module.load_state_dict(layout.unflatten(start), strict=False)
    owned = source.defense_set(inputs, lambda given: penultimate(module, given))
    server = Server(predictor(module, layout), seed=opened.experiment.seed, defense_set=owned)
    psi = DataDefense().init(server, start).psi
    return gamma(psi, standardise(owned.features), owned.examples.labels)


def _in_words(tokens: Tensor, vocabulary: Vocabulary) -> list[str]:
    words = ("", "...", *vocabulary.words)  # 0 is padding, 1 any other word
    return [" ".join(filter(None, (words[one] for one in row))) for row in tokens.tolist()]


def _doubles(source: DefenseSetSource, kept: Tensor) -> tuple[list[str], list[str]]:
    """Return examples that are there twice, and inputs that are there under two labels."""
    first: dict[bytes, int] = {}
    same: list[str] = []
    contradictory: list[str] = []
    for row, key in enumerate(content_keys(kept)):
        other = first.setdefault(key, row)
        if other != row:
            pair = f"{source.ids[other]!r} and {source.ids[row]!r} are the same"
            if source.labels[other] == source.labels[row]:
                same.append(f"{pair} example")
            else:
                contradictory.append(f"{pair} input under two labels")
    return same, contradictory


def _odd_labels(source: DefenseSetSource, classes: int) -> Iterator[str]:
    for one, label in zip(source.ids, source.labels.tolist(), strict=True):
        if not 0 <= label < classes:
            yield f"the label of {one!r} must be in 0..{classes - 1}, got {label}"


def _doubts(source: DefenseSetSource) -> Iterator[str]:
    known = int(source.known_clean.sum())
    if known < FEWEST:
        yield f"{known} examples are known clean, fewer than {FEWEST}: the detector may fail"
    labels = set(source.labels[source.known_clean].tolist())
    if known > 1 and len(labels) == 1:
        yield f"all known clean examples have the label {labels.pop()}: mark some of other classes"
    if known == len(source):
        yield "every example is known clean: none can be found to be poisoned"


def _print_classes(source: DefenseSetSource) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("label", "examples", "known clean"):
        table.add_column(column, justify="right")
    every = Counter(source.labels.tolist())
    known = Counter(source.labels[source.known_clean].tolist())
    for label, count in sorted(every.items()):
        table.add_row(str(label), str(count), str(known[label]))
    Console().print(table)


def _print_strangest(source: DefenseSetSource, scores: Float[Tensor, " examples"]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("strangest", "gamma", "label", "known clean", "provenance"):
        table.add_column(column)
    for row in scores.sort(descending=True, stable=True).indices[:STRANGEST].tolist():
        known = "yes" if source.known_clean[row] else ""
        origin = escape(source.provenance[row])
        score, label = f"{float(scores[row]):.2f}", str(int(source.labels[row]))
        table.add_row(escape(source.ids[row]), score, label, known, origin)
    Console().print(table)
