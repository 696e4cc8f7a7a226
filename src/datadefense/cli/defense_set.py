"""``datadefense defense-set``: build one, look at it, mark what is clean, check it."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int64
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from torch import Tensor

from datadefense.data.cache import cache_folder
from datadefense.data.catalog import find_dataset, load_images, load_texts
from datadefense.data.contact_sheet import render
from datadefense.data.content import content_keys, rows_seen_in
from datadefense.data.defense_folder import (
    DefenseSetSource,
    from_file,
    read_defense_folder,
    write_defense_folder,
    write_marks,
)
from datadefense.data.digits import DEVIATION, MEAN
from datadefense.data.errors import DataError
from datadefense.data.folder import existing
from datadefense.data.text import Vocabulary
from datadefense.defenses.datadefense import DataDefense
from datadefense.defenses.datadefense.detector import gamma, standardise
from datadefense.examples import Examples
from datadefense.experiments.experiment import Experiment
from datadefense.experiments.material import Material
from datadefense.experiments.run import CLEAN, POISONED, gather
from datadefense.experiments.setups import experiment
from datadefense.experiments.tweets import DIRECTOR
from datadefense.experiments.warm_start import warm_start
from datadefense.models.features import penultimate
from datadefense.params import Layout, predictor
from datadefense.rng import generator
from datadefense.server import Server
from datadefense.settings import SettingsError, number, read_pairs, whole
from datadefense.storage import write_text

SIZE, SHARE, CLEAN_BESIDE = 500, 0.2, 400
"""The paper's defense set: 500 examples, a fifth poisoned and a fifth known to be clean."""
FEWEST = 5
"""Known clean examples below which the detector has little to hold on to."""
STRANGEST = 10
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")


@dataclass(frozen=True, slots=True)
class Chosen:
    """A setup as the command line names it, and where data sets are."""

    setup: str | None
    scale: str = "cpu"
    seed: int = 0
    changes: tuple[str, ...] = ()
    data: Path | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a new set should hold; None leaves it to us, or says that it is not asked for."""

    size: int | None = None
    poison_share: float | None = None
    known_clean: int | None = None
    dataset: str | None = None
    suspects: Path | None = None
    label: int | None = None
    clean: int | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A setup with its data."""

    experiment: Experiment
    material: Material
    data: Path | None

    def held_out(self) -> dict[str, Tensor]:
        """Return what models are judged by, which no defense set may hold."""
        judged = {"test": self.material.test, "backdoor test": self.material.backdoor_test}
        return {name: _kept(examples.inputs) for name, examples in judged.items()}

    def classes(self) -> int:
        """Return how many logits the model has."""
        with torch.no_grad():
            return int(self.material.module.eval()(self.material.test.inputs[:1]).shape[1])

    def vocabulary(self) -> Vocabulary:
        """Return the words of sentiment-yl, numbered as in its material."""
        extra = DIRECTOR if self.experiment.director_words else ()
        texts = load_texts("sentiment140", self.data, "train").texts
        return Vocabulary.build(texts, self.experiment.vocabulary, extra)

    def inputs(self, source: DefenseSetSource, folder: Path) -> Tensor:
        """Return a set's inputs as the model takes them, or raise if it cannot take them.

        The digits of digits-edge are normalised in advance; other models take pixels or tokens.
        """
        given, like, name = source.inputs, self.material.test.inputs, self.experiment.setup
        if isinstance(given, tuple) and like.ndim == 2:
            given = self.vocabulary().encode(given, self.experiment.length)
        if isinstance(given, tuple) or given.shape[1:] != like.shape[1:]:
            found = "texts" if isinstance(given, tuple) else f"inputs {list(given.shape[1:])}"
            raise DataError(f"{folder} holds {found}, {name} takes inputs {list(like.shape[1:])}")
        if like.ndim == 2:
            words = next(self.material.module.parameters()).shape[0]
            odd = ((given < 0) | (given >= words)).any(1).nonzero().flatten().tolist()
            if odd:
                raise DataError(
                    f"{folder}: tokens must be in 0..{words - 1}, those of {source.ids[odd[0]]!r} "
                    "are not"
                )
        return (given / 255 - MEAN) / DEVIATION if like.is_floating_point() else given


def open_setup(chosen: Chosen) -> Opened:
    """Return the chosen setup's experiment and material."""
    torch.set_num_threads(1)
    changes = {"seed": str(chosen.seed)} | read_pairs(chosen.changes)
    configured = experiment(chosen.setup or "", chosen.scale, changes)
    return Opened(configured, gather(configured, chosen.data), chosen.data)


def build(out: Path, chosen: Chosen, wanted: Wanted) -> None:
    """Write a new defense set, from a setup or from a data set and suspects."""
    if (chosen.setup is None) == (wanted.dataset is None):
        raise SettingsError("give either --setup, or --dataset with --suspects and --label")
    kind, foreign = (
        ("--dataset", {"--size": wanted.size, "--poison-share": wanted.poison_share})
        if chosen.setup is None
        else ("--setup", {"--suspects": wanted.suspects, "--label": wanted.label,
                          "--clean": wanted.clean})
    )  # fmt: skip
    if odd := [name for name, value in foreign.items() if value is not None]:
        raise SettingsError(f"{odd[0]} does not go with {kind}")
    whole("known-clean", wanted.known_clean or 0, 0)
    make = _from_suspects if chosen.setup is None else _from_setup
    source = make(chosen, wanted)
    write_defense_folder(source, out)
    _say(f"wrote {out}: {_count(source)}")


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
    _say(f"{_count(source)}; wrote {page}")


def mark(folder: Path, ids: list[str], clean: bool, note: str | None) -> None:
    """Change marks."""
    source = read_defense_folder(folder).mark(ids, clean, note)
    write_marks(source, folder)
    state = "known clean" if clean else "not known clean"
    _say(f"marked {len(set(ids))} as {state}: {_count(source)}")


def check(folder: Path, chosen: Chosen) -> None:
    """Print what is wrong with a set and what is doubtful; exit with 1 if anything is wrong."""
    source, opened = read_defense_folder(folder), open_setup(chosen)
    kept = _kept(opened.inputs(source, folder))
    errors, warnings = _doubles(source, kept)
    errors += _odd_labels(source, opened.classes())
    for name, inputs in opened.held_out().items():
        if seen := rows_seen_in(kept, inputs).tolist():
            errors.append(
                f"{len(seen)} of {len(source)} examples are also in the {name} of "
                f"{opened.experiment.setup}, the first is {source.ids[seen[0]]!r}"
            )
    for problem in errors:
        _say(f"error: {problem}")
    for doubt in [*warnings, *_doubts(source)]:
        _say(f"warning: {doubt}")
    if errors:
        sys.exit(1)
    _say(f"ok: {_count(source)}")


def _from_setup(chosen: Chosen, wanted: Wanted) -> DefenseSetSource:
    """Draw from what the setup has for its server, less what models are judged by."""
    share = SHARE if wanted.poison_share is None else wanted.poison_share
    number("poison-share", share, minimum=0, below=1)
    whole("size", SIZE if wanted.size is None else wanted.size, 1)
    opened = open_setup(chosen)
    held = list(opened.held_out().values())
    clean = _fresh(opened.material.server_clean, held)
    poison = _fresh(opened.material.server_poison, [*held, clean.inputs])

    def fits(total: int) -> bool:
        return round(share * total) <= len(poison) and total - round(share * total) <= len(clean)

    most = next(filter(fits, range(len(clean) + len(poison), 0, -1)), 0)
    size = min(SIZE, most) if wanted.size is None else wanted.size
    if not fits(size):
        raise SettingsError(
            f"size must be <= {most} at poison-share {share:g}, got {size}: {chosen.setup} has "
            f"{len(clean)} clean and {len(poison)} poisoned examples for its server"
        )
    draw, bad = generator(opened.experiment.seed, "defense set"), round(share * size)
    clean, poison = _some(clean, size - bad, draw), _some(poison, bad, draw)
    return _mix(
        clean,
        poison,
        (POISONED,) * bad,
        known=wanted.known_clean,
        trusted=str(chosen.setup),
        draw=draw,
    )


def _from_suspects(chosen: Chosen, wanted: Wanted) -> DefenseSetSource:
    """Put suspects beside clean examples of a data set's training part."""
    if wanted.dataset is None or wanted.suspects is None or wanted.label is None:
        raise SettingsError("--dataset needs --suspects and --label")
    number("label", wanted.label, minimum=0, maximum=find_dataset(wanted.dataset).classes - 1)
    train = load_images(wanted.dataset, chosen.data, "train")
    count = min(CLEAN_BESIDE, len(train)) if wanted.clean is None else wanted.clean
    number("clean", count, minimum=0, maximum=len(train))
    files = sorted(existing(wanted.suspects).iterdir())
    files = [path for path in files if path.suffix.lower() in SUFFIXES]
    if not files:
        raise DataError(f"{wanted.suspects} holds no images ({', '.join(SUFFIXES)})")
    images = torch.stack([_suspect(path, train.inputs, wanted.dataset) for path in files])
    rows = _fresh_rows(images, [])
    suspects = Examples(images[rows], torch.full((len(rows),), wanted.label))
    origin = tuple(f"{wanted.suspects.name}/{files[row].name}" for row in rows.tolist())
    draw = generator(chosen.seed, "defense set")
    clean = _fresh(_some(train, count, draw), [images])
    return _mix(
        clean, suspects, origin, known=wanted.known_clean, trusted=wanted.dataset, draw=draw
    )


def _suspect(path: Path, like: Tensor, dataset: str) -> Tensor:
    """Return an image file's pixels in the form that a data set's images have."""
    image = from_file(path.read_bytes(), str(path))
    channels, height, width = like.shape[1:]
    if image.shape[1:] != (height, width):
        raise DataError(
            f"{path} is {image.shape[2]}x{image.shape[1]}, the images of {dataset} are "
            f"{width}x{height}: bring it to that size"
        )
    if channels == 1 and bool((image != image[:1]).any()):
        raise DataError(f"{path} is in colour, the images of {dataset} are grey")
    return image[:1].expand(channels, -1, -1) if image.shape[0] != channels else image


def _mix(
    clean: Examples,
    others: Examples,
    origin: tuple[str, ...],
    *,
    known: int | None,
    trusted: str,
    draw: torch.Generator,
) -> DefenseSetSource:
    """Return both in random order, with ``known`` of the clean ones marked."""
    both = clean.join(others)
    marked = min(round(SHARE * len(both)), len(clean)) if known is None else known
    number("known-clean", marked, maximum=len(clean))
    order = torch.randperm(len(both), generator=draw)
    provenance = (CLEAN,) * len(clean) + origin
    note = f"trusted as a part of {trusted}"
    return DefenseSetSource(
        both.inputs[order],
        both.labels[order],
        order < marked,
        provenance=tuple(provenance[row] for row in order.tolist()),
        notes=tuple(note if row < marked else "" for row in order.tolist()),
    )


def _kept(inputs: Tensor) -> Tensor:
    """Return inputs as a folder keeps them: the digits of digits-edge as pixels again."""
    if not inputs.is_floating_point():
        return inputs
    return ((inputs * DEVIATION + MEAN) * 255).round().clamp(0, 255).to(torch.uint8)


def _some(examples: Examples, count: int, draw: torch.Generator) -> Examples:
    return examples.take(torch.randperm(len(examples), generator=draw)[:count])


def _fresh(examples: Examples, others: Sequence[Tensor]) -> Examples:
    """Return examples as a folder keeps them, each once, without those that ``others`` have."""
    kept = _kept(examples.inputs)
    rows = _fresh_rows(kept, others)
    return Examples(kept[rows], examples.labels[rows])


def _fresh_rows(inputs: Tensor, others: Sequence[Tensor]) -> Int64[Tensor, " rows"]:
    places: dict[bytes, int] = {}
    for row, key in enumerate(content_keys(inputs)):
        places.setdefault(key, row)
    for other in others:
        for key in content_keys(other):
            places.pop(key, None)
    return torch.tensor(list(places.values()), dtype=torch.int64)


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


def _count(source: DefenseSetSource) -> str:
    return f"{len(source)} examples, {int(source.known_clean.sum())} known clean"


def _say(text: str) -> None:
    Console().print(text, highlight=False, soft_wrap=True, markup=False)
