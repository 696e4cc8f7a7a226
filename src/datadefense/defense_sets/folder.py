"""A defense set as a folder that people own: examples in parquet, marks in a spreadsheet.

``examples.parquet`` has the columns id, image (PNG, a struct {bytes, path}) or text or tokens,
label and provenance. ``marks.csv`` has id, known_clean (yes or no) and note. Features depend on an
encoder, so they are not kept; who has some of their own puts them into ``features.safetensors``,
one vector an id, and they are used instead.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int64
from safetensors.torch import load
from torch import Tensor

from datadefense.core.defense_set import DefenseSet, Inputs, content_ids
from datadefense.core.examples import Examples
from datadefense.core.storage import save_tensors, write_atomically
from datadefense.data.errors import DataError, refusing
from datadefense.data.file_content import read_at_most
from datadefense.data.image_files import extra, from_file, stack, to_png
from datadefense.data.parquet import column_names, read_texts
from datadefense.data.parquet_table import check_growth, open_parquet
from datadefense.defense_sets.marks import MARKS, read_marks, write_marks

EXAMPLES, FEATURES = "examples.parquet", "features.safetensors"
KINDS = ("image", "text", "tokens")
Kind = Literal["image", "text", "tokens"]
LONGEST_ID = 255
MAX_FEATURES = 1 << 31
"""Most bytes of a file of features."""

CLEAN, POISONED = "clean", "poisoned"
"""Where an example of the defense set came from; only the measuring of hits looks at it."""


@dataclass(frozen=True, slots=True, eq=False)
class DefenseSetSource:
    """What a defense set is made of, before an encoder has seen it.

    Args:
        inputs: uint8 images [n, channels, height, width], tokens [n, length], or texts.
        labels: the labels they came with, right or wrong.
        known_clean: which of them somebody has looked at and found clean.
        ids: one text each, all different; by default `content_ids`.
        provenance: where each came from.
        notes: what somebody wrote beside a mark.
        features: an encoder's view of each input, if there is one already.
    """

    inputs: Inputs
    labels: Int64[Tensor, " examples"]
    known_clean: Bool[Tensor, " examples"]
    ids: tuple[str, ...] = ()
    provenance: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    features: Float[Tensor, "examples width"] | None = None

    def __post_init__(self) -> None:
        count = len(self)
        if not count or len(self.inputs) != count:
            raise DataError(f"one label an input: got {len(self.inputs)} inputs, {count} labels")
        self.kind  # noqa: B018 - raises if there is none
        if not self.ids:
            object.__setattr__(self, "ids", content_ids(self.inputs, self.labels))
        for name in ("provenance", "notes"):
            object.__setattr__(self, name, getattr(self, name) or ("",) * count)
        for name in ("known_clean", "ids", "provenance", "notes", "features"):
            column = getattr(self, name)
            if column is not None and len(column) != count:
                raise DataError(f"{name} must have {count} rows, got {len(column)}")
        _check_ids("ids", self.ids)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def kind(self) -> Kind:
        """Return what the inputs are, which is also the name of their column."""
        if isinstance(self.inputs, tuple):
            return "text"
        shape, dtype = list(self.inputs.shape), self.inputs.dtype
        if len(shape) == 4 and shape[1] in (1, 3) and dtype == torch.uint8:
            return "image"
        if len(shape) == 2 and dtype in (torch.int32, torch.int64):
            return "tokens"
        raise DataError(
            "inputs must be texts, uint8 images [n, 1 or 3, height, width] or integer tokens "
            f"[n, length], got {dtype} {shape}"
        )

    def mark(
        self, ids: Iterable[str], clean: bool = True, note: str | None = None
    ) -> "DefenseSetSource":
        """Return the set with these examples known to be clean, or no longer; None: notes stay."""
        places = {example_id: place for place, example_id in enumerate(self.ids)}
        known, notes = self.known_clean.clone(), list(self.notes)
        for example_id in ids:
            if example_id not in places:
                raise DataError(f"no example is called {example_id!r}")
            known[places[example_id]] = clean
            notes[places[example_id]] = notes[places[example_id]] if note is None else note
        return replace(self, known_clean=known, notes=tuple(notes))

    def defense_set(self, inputs: Tensor, encode: Callable[[Tensor], Tensor]) -> DefenseSet:
        """Return the set that a server holds.

        Args:
            inputs: what the model takes: ``self.inputs``, or what was made of it.
            encode: gives features, where the folder brings none of its own.
        """
        features = encode(inputs) if self.features is None else self.features
        examples = Examples(inputs, self.labels)
        return DefenseSet(examples, self.known_clean, features, self.ids, self.provenance)


def write_defense_folder(source: DefenseSetSource, folder: Path) -> None:
    """Write a folder; one that holds a defense set already is refused, for its marks' sake."""
    refuse_existing(folder)
    table, parquet = _table(source), extra("pyarrow.parquet")
    folder.mkdir(parents=True, exist_ok=True)
    if source.features is not None:
        save_tensors(folder / FEATURES, dict(zip(source.ids, source.features, strict=True)), {})
    write_marks(folder, source.ids, source.known_clean, source.notes)
    write_atomically(folder / EXAMPLES, lambda part: parquet.write_table(table, part))


def refuse_existing(folder: Path) -> None:
    """Raise if a folder holds a defense set."""
    for name in (EXAMPLES, MARKS):
        if (folder / name).exists():
            raise DataError(f"{folder} holds a defense set already ({name}): choose another folder")


def read_defense_folder(folder: Path) -> DefenseSetSource:
    """Read a folder; whatever is wrong with it is one `DataError` that says where."""
    path = folder / EXAMPLES
    if not path.is_file():
        raise DataError(f"{folder} holds no defense set: there is no {EXAMPLES}")
    with refusing(f"{path} cannot be used"):
        return _read(folder, path)


def _read(folder: Path, path: Path) -> DefenseSetSource:
    kind = _kind(path, column_names(path))
    ids, labels = read_texts(path, "id", "label")
    _check_ids(str(path), ids)
    provenance, _ = read_texts(path, "provenance", "label")
    inputs: Inputs
    if kind == "text":
        inputs = tuple(read_texts(path, "text", "label")[0])
    else:
        inputs = (_read_images if kind == "image" else _read_tokens)(path, ids)
    known, notes = read_marks(folder / MARKS, ids)
    features = _read_features(folder / FEATURES, ids)
    return DefenseSetSource(inputs, labels, known, tuple(ids), tuple(provenance), notes, features)


def _table(source: DefenseSetSource) -> Any:
    """Return the examples as a table that the Hugging Face libraries can read, too."""
    arrow, kind, content = extra("pyarrow"), source.kind, source.inputs
    images = arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])
    cells = content if isinstance(content, tuple) else content.tolist() if kind == "tokens" else [
        {"bytes": to_png(image), "path": None} for image in content
    ]  # fmt: skip
    types = {"image": images, "text": arrow.string(), "tokens": arrow.list_(arrow.int32())}
    columns = {
        "id": arrow.array(source.ids, arrow.string()),
        kind: arrow.array(cells, types[kind]),
        "label": arrow.array(source.labels.tolist(), arrow.int64()),
        "provenance": arrow.array(source.provenance, arrow.string()),
    }
    if kind != "image":
        return arrow.table(columns)
    names = {"id": "string", "label": "int64", "provenance": "string"}
    features = {name: {"_type": "Value", "dtype": dtype} for name, dtype in names.items()}
    described = json.dumps({"info": {"features": features | {"image": {"_type": "Image"}}}})
    return arrow.table(columns).replace_schema_metadata({"huggingface": described})


def _check_ids(where: str, ids: Sequence[str]) -> None:
    seen: set[str] = set()
    for example_id in ids:
        if (
            not example_id
            or example_id != example_id.strip()
            or not example_id.isprintable()
            or len(example_id) > LONGEST_ID
        ):
            raise DataError(
                f"{where}: an id has 1 to {LONGEST_ID} printable characters without blanks at its "
                f"ends, got {example_id[:LONGEST_ID]!r}"
            )
        if example_id in seen:
            raise DataError(f"{where}: the id {example_id!r} is there twice")
        seen.add(example_id)


def _kind(path: Path, names: Sequence[str]) -> str:
    for name in ("id", "label", "provenance"):
        if name not in names:
            raise DataError(f"{path} has no column {name!r}; it has: {names}")
    kinds = [name for name in KINDS if name in names]
    if len(kinds) != 1:
        raise DataError(f"{path} must have one of the columns {', '.join(KINDS)}; it has: {names}")
    return kinds[0]


def _column(path: Path, name: str, ids: Sequence[str]) -> Any:
    with open_parquet(path) as table:
        column = table.read([name]).column(name)
    if len(column) != len(ids):
        raise DataError(f"{path}: {name!r} has {len(column)} rows, there are {len(ids)} ids")
    return column


def _read_images(path: Path, ids: Sequence[str]) -> Tensor:
    column = _column(path, "image", ids)
    if not hasattr(column.type, "get_field_index") or column.type.get_field_index("bytes") < 0:
        raise DataError(f"{path}: 'image' must be a struct {{bytes, path}}, is {column.type}")
    places = [f"{path}, {example_id!r}" for example_id in ids]
    images: list[Tensor] = []
    size: tuple[int, int] | None = None
    for struct, where in zip(column.to_pylist(), places, strict=True):
        content = (struct or {}).get("bytes")
        if not isinstance(content, bytes):
            raise DataError(f"{where}: the image has no bytes")
        images.append(from_file(content, where, size))
        if size is None:
            height, width = images[0].shape[1:]
            size = width, height
            check_growth(str(path), 3 * width * height * len(ids), path.stat().st_size)
    return stack(images)


def _read_tokens(path: Path, ids: Sequence[str]) -> Tensor:
    with refusing(f"{path} is not a readable parquet file"):
        rows = _column(path, "tokens", ids).to_pylist()
    length = len(rows[0]) if isinstance(rows[0], list) else 0
    for example_id, row in zip(ids, rows, strict=True):
        if not isinstance(row, list) or not all(type(word) is int for word in row):
            raise DataError(f"{path}, {example_id!r}: tokens must be a list of integers")
        if len(row) != length:
            raise DataError(
                f"{path}, {example_id!r}: tokens must have one length, "
                f"found {len(row)} after {length}"
            )
    with refusing(f"{path}: tokens must fit into 32 bits"):
        return torch.tensor(rows, dtype=torch.int32)


def _read_features(path: Path, ids: Sequence[str]) -> Tensor | None:
    if not path.exists():
        return None
    content = read_at_most(path, MAX_FEATURES)
    with refusing(f"{path} is not a readable safetensors file"):
        tensors = load(content)
        if missing := [example_id for example_id in ids if example_id not in tensors]:
            raise DataError(f"{path} has no features of {missing[0]!r}")
        rows = [tensors[example_id] for example_id in ids]
    shape = rows[0].shape
    for example_id, row in zip(ids, rows, strict=True):
        if row.ndim != 1 or row.shape != shape or not row.is_floating_point():
            raise DataError(
                f"{path}, {example_id!r}: features must be vectors of one length, "
                f"found {row.dtype} "
                f"{list(row.shape)} after {list(shape)}"
            )
        if not bool(row.isfinite().all()):
            raise DataError(f"{path}, {example_id!r}: features must be finite")
    return torch.stack([row.to(torch.float32) for row in rows])
