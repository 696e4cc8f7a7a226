"""``datadefense defense-set``: build one, look at it, mark what is clean, check it."""

import sys
from collections import Counter
from pathlib import Path

from jaxtyping import Float
from rich.table import Table
from torch import Tensor

from datadefense.cli.opened_task import Chosen, Opened, first_model, open_task, say, tally
from datadefense.cli.plain_console import plain_console
from datadefense.core.features import penultimate
from datadefense.core.foreign import sanitize
from datadefense.core.predictor import Layout, predictor
from datadefense.core.server import Server
from datadefense.core.storage import write_text
from datadefense.data.errors import DataError
from datadefense.defense_sets.checks import classes, odd_labels, problems
from datadefense.defense_sets.contact_sheet import render
from datadefense.defense_sets.folder import DefenseSetSource, read_defense_folder
from datadefense.defense_sets.marks import write_marks
from datadefense.defenses.datadefense import DataDefenseLearned
from datadefense.defenses.datadefense.detector import gamma, standardise

STRANGEST = 10


def show(folder: Path, chosen: Chosen, out: Path | None) -> None:
    """Print what a set holds and write its contact sheet; with a task, by gamma."""
    source = read_defense_folder(folder)
    scores: Tensor | None = None
    texts: list[str] | None = None
    if chosen.task is not None:
        opened = open_task(chosen)
        inputs = opened.inputs(source, folder)
        for problem in odd_labels(source, classes(opened.data)):
            raise DataError(f"{folder}: {problem}")
        scores = _gamma(source, inputs, opened)
        if source.kind == "tokens" and opened.data.vocabulary is not None:
            texts = opened.data.vocabulary.decode(inputs)
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
    source, opened = read_defense_folder(folder), open_task(chosen)
    inputs = opened.inputs(source, folder)
    errors, warnings = problems(source, inputs, opened.data, opened.experiment.name_of("task"))
    for problem in errors:
        say(f"error: {problem}")
    for doubt in warnings:
        say(f"warning: {doubt}")
    if errors:
        sys.exit(1)
    say(f"ok: {tally(source)}")


def _gamma(source: DefenseSetSource, inputs: Tensor, opened: Opened) -> Float[Tensor, " examples"]:
    """Return gamma as the learned form has it before the first round of the task."""
    module = opened.data.module
    layout = Layout.of_module(module)
    start = first_model(opened)
    module.load_state_dict(layout.unflatten(start), strict=False)
    defense_set = source.defense_set(inputs, lambda given: penultimate(module, given))
    server = Server(predictor(module, layout), seed=opened.experiment.seed, defense_set=defense_set)
    psi = DataDefenseLearned().init(server, start).psi
    return gamma(psi, standardise(defense_set.features), defense_set.examples.labels)


def _print_classes(source: DefenseSetSource) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("label", "examples", "known clean"):
        table.add_column(column, justify="right")
    every = Counter(source.labels.tolist())
    known = Counter(source.labels[source.known_clean].tolist())
    for label, count in sorted(every.items()):
        table.add_row(str(label), str(count), str(known[label]))
    plain_console().print(table)


def _print_strangest(source: DefenseSetSource, scores: Float[Tensor, " examples"]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("strangest", "gamma", "label", "known clean", "provenance"):
        table.add_column(column)
    for row in scores.sort(descending=True, stable=True).indices[:STRANGEST].tolist():
        known = "yes" if source.known_clean[row] else ""
        origin = sanitize(source.provenance[row], 80)
        score, label = f"{float(scores[row]):.2f}", str(int(source.labels[row]))
        table.add_row(sanitize(source.ids[row], 80), score, label, known, origin)
    plain_console().print(table)
