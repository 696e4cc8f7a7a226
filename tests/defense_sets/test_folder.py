"""A defense set's folder: what is written is read, and whatever breaks it is one line."""

import csv
import io
import random
from contextlib import suppress

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from tests.data.pictures import images

from datadefense.data.errors import DataError
from datadefense.data.image_files import from_file
from datadefense.data.parquet import read_images
from datadefense.defense_sets.folder import (
    DefenseSetSource,
    read_defense_folder,
    write_defense_folder,
)
from datadefense.defense_sets.marks import write_marks

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

COUNT = 6
INPUTS = {
    "colour": images(COUNT, "colour"),
    "grey": images(COUNT, "grey", channels=1, side=5),
    "tokens": torch.arange(24, dtype=torch.int32).view(COUNT, 4),
    "text": tuple(f'tweet {i}, "quoted" \N{GREEK SMALL LETTER ALPHA}\n' for i in range(COUNT)),
}


def source(kind="grey", **changes):
    fields = {
        "inputs": INPUTS[kind],
        "labels": torch.arange(COUNT) % 3,
        "known_clean": torch.arange(COUNT) < 2,
        "ids": tuple("abcdef"),
        "provenance": tuple(f"camera {i}" for i in range(COUNT)),
        "notes": ("", 'seen by "me", twice', "", "=1+1", "", "é"),
    }
    return DefenseSetSource(**(fields | changes))


@pytest.fixture
def folder(tmp_path):
    write_defense_folder(source(), tmp_path / "own")
    return tmp_path / "own"


def same(one, other):
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("features", [None, torch.rand(COUNT, 7)])
def test_what_is_written_is_read(tmp_path, kind, features):
    written = source(kind, features=features)
    write_defense_folder(written, tmp_path / "deep" / "own")
    read = read_defense_folder(tmp_path / "deep" / "own")
    for field in DefenseSetSource.__dataclass_fields__:
        assert same(getattr(read, field), getattr(written, field)), field
    assert (tmp_path / "deep" / "own" / "features.safetensors").exists() == (features is not None)
    assert not list((tmp_path / "deep" / "own").glob(".*"))


def test_the_examples_are_in_the_layout_of_the_other_readers(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path / "cache"))
    examples = read_images(folder / "examples.parquet", "image", "label")
    assert torch.equal(examples.inputs, INPUTS["grey"])
    assert (
        b'"image": {"_type": "Image"}'
        in pq.read_schema(folder / "examples.parquet").metadata[b"huggingface"]
    )


def test_the_set_that_a_server_holds():
    plain = source()
    owned = plain.defense_set(plain.inputs.float(), lambda x: x.flatten(1))
    assert owned.ids == plain.ids
    assert owned.provenance == plain.provenance
    assert torch.equal(owned.known_clean, plain.known_clean)
    assert owned.features.shape == (COUNT, 25)
    brought = source(features=torch.ones(COUNT, 2))
    owned = brought.defense_set(brought.inputs, lambda _: pytest.fail("there are features"))
    assert torch.equal(owned.features, torch.ones(COUNT, 2))


def test_ids_tell_content_and_survive_a_spreadsheet():
    twice = images(COUNT, "grey", 1)
    twice[5] = twice[0]
    labels = torch.zeros(COUNT, dtype=torch.int64)
    known = torch.zeros(COUNT, dtype=torch.bool)
    ids = DefenseSetSource(twice, labels, known).ids
    assert ids[5] == f"{ids[0]}-2"
    assert all(one.startswith("x") and len(one) in (11, 13) for one in ids)
    assert ids[1:5] == DefenseSetSource(twice[1:5], labels[1:5], known[1:5]).ids
    assert ids[1] != DefenseSetSource(twice, labels + 1, known).ids[1]
    texts = ("a", "b", "a", "c", "d", "e")
    ids = DefenseSetSource(texts, labels, known).ids
    assert ids[2] == f"{ids[0]}-2"


def test_marks_change_without_the_rest(folder):
    before = read_defense_folder(folder)
    content = (folder / "examples.parquet").read_bytes()
    after = before.mark(["c", "b"], note="looked, \n twice").mark(["a"], clean=False)
    assert before.known_clean.tolist() == [True, True, False, False, False, False]
    write_marks(folder, after.ids, after.known_clean, after.notes)
    read = read_defense_folder(folder)
    assert read.known_clean.tolist() == [False, True, True, False, False, False]
    assert read.notes[:3] == ("", "looked, \n twice", "looked, \n twice")
    assert (folder / "examples.parquet").read_bytes() == content
    with pytest.raises(DataError, match=r"^no example is called 'z'$"):
        after.mark(["z"])


def test_a_folder_in_use_is_left_alone(folder):
    with pytest.raises(DataError, match=r"own holds a defense set already \(examples.parquet\)"):
        write_defense_folder(source(), folder)
    (folder / "examples.parquet").unlink()
    with pytest.raises(DataError, match=r"own holds a defense set already \(marks.csv\)"):
        write_defense_folder(source(), folder)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_marks_as_spreadsheets_save_them(folder, separator):
    """Another separator, order of lines and columns, a byte order mark, CRLF, blank lines."""
    rows = [("note", "KNOWN_CLEAN ", "id")]
    rows += [(f"n{one}; ,", "YES" if one in "ace" else "No", one) for one in "fedcba"]
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="\r\n").writerows(rows)
    content = "\ufeff" + text.getvalue() + separator * 2 + "\r\n\r\n"
    (folder / "marks.csv").write_bytes(content.encode())
    read = read_defense_folder(folder)
    assert read.known_clean.tolist() == [True, False] * 3
    assert read.notes == tuple(f"n{one}; ," for one in "abcdef")


HEAD = "id,known_clean,note\n"
LINES = "".join(f"{one},no,\n" for one in "abcdef")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEAD + LINES + "z,yes,\n", r"line 8: the set has no example 'z'$"),
        (HEAD + LINES + "a,yes,\n", r"line 8: 'a' has a line already$"),
        (HEAD + LINES.replace("c,no", "c,maybe"), r"line 4: known_clean of 'c' .* got 'maybe'$"),
        (HEAD + LINES.replace("c,no", "c,"), r"line 4: known_clean of 'c' .* got ''$"),
        (HEAD + LINES.replace("c,no,", "c"), r"line 4: known_clean of 'c' .* got ''$"),
        (HEAD + LINES.replace("c,no,", "c,no,fine, really"), r"line 4: 4 cells, expected 3"),
        (HEAD + LINES.replace("b,no,\n", ""), r"marks.csv has no line for 'b'$"),
        (HEAD, r"marks.csv has no line for 'a' and 5 more$"),
        ("", r"must have the columns id, known_clean, note; it has: \[\]$"),
        ("id,clean,note\n" + LINES, r"it has: \['id', 'clean', 'note'\]$"),
        ("id,known_clean,note,who\n" + LINES, r"it has: \['id', 'known_clean', 'note', 'who'\]$"),
        (HEAD + f'a,no,"{"x" * 200_000}"\n', r"line 2: field larger than field limit"),
        (None, r"marks.csv is not a file"),
    ],
)
def test_broken_marks(folder, content, message):
    if content is None:
        (folder / "marks.csv").unlink()
    else:
        (folder / "marks.csv").write_text(content)
    fails(folder, message)


def test_marks_in_another_encoding(folder):
    (folder / "marks.csv").write_bytes((HEAD + LINES.replace("a,no,", "a,no,é")).encode("latin-1"))
    fails(folder, r"marks.csv is not UTF-8: save it as CSV in UTF-8$")


def fails(folder, message):
    with pytest.raises(DataError, match=message) as caught:
        read_defense_folder(folder)
    assert len(str(caught.value).splitlines()) == 1
    assert str(folder) in str(caught.value)


def png(width=5, height=5, mode="L"):
    buffer = io.BytesIO()
    Image.new(mode, (width, height)).save(buffer, "PNG")
    return buffer.getvalue()


def struct(contents):
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.array([one and {"bytes": one, "path": None} for one in contents], kind)


def tokens(rows, kind=None):
    return pa.array(rows, kind or pa.list_(pa.int64()))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"id": None},
            r"examples.parquet has no column 'id'; it has: \['image', 'label', 'provenance'\]$",
        ),
        ({"label": None}, r"has no column 'label'"),
        ({"provenance": None}, r"has no column 'provenance'"),
        (
            {"image": None},
            r"must have one of the columns image, text, tokens; it has: \['id', 'label'",
        ),
        ({"text": ["x"] * 6}, r"must have one of the columns image, text, tokens"),
        ({"id": list("abcdea")}, r"examples.parquet: the id 'a' is there twice$"),
        ({"id": list("abcde ")}, r"an id has 1 to 255 printable characters .* got ' '$"),
        ({"id": [*"abcde", ""]}, r"an id has 1 to 255 printable characters .* got ''$"),
        ({"id": [*"abcde", "f\ng"]}, r"an id has 1 to 255 printable .* got 'f\\ng'$"),
        ({"id": [*"abcde", None]}, r"'id' must hold a text in every row$"),
        ({"label": ["one"] * 6}, r"'label' must hold integers$"),
        ({"label": pa.array([1, 2, 3, 4, 5, None])}, r"'label' has 1 empty rows$"),
        ({"image": ["x"] * 6}, r"'image' must be a struct \{bytes, path\}, is string$"),
        ({"image": struct([png()] * 5 + [None])}, r"parquet, 'f': the image has no bytes$"),
        ({"image": struct([png()] * 5 + [b"P"])}, r"parquet, 'f': broken image: cannot identify"),
        ({"image": struct([png()] * 5 + [png()[:45]])}, r"parquet, 'f': broken image: "),
        ({"image": struct([png()] * 5 + [png(4)])}, r"'f': .* one size, found 4x5, expected 5x5$"),
        ({"image": struct([png()] * 5 + [png(mode="RGBA")])}, r"'f': cannot use .* mode RGBA"),
        ({"image": None, "text": [*"abcde", None]}, r"'text' must hold a text in every row$"),
        ({"image": None, "tokens": tokens([[1]] * 5 + [None])}, r"'f': tokens must be a list"),
        ({"image": None, "tokens": tokens([[1]] * 5 + [[None]])}, r"'f': tokens must be a list"),
        ({"image": None, "tokens": tokens([None] + [[]] * 5)}, r"'a': tokens must be a list"),
        ({"image": None, "tokens": pa.array([1] * 6)}, r"'a': tokens must be a list of integers$"),
        ({"image": None, "tokens": tokens([[1]] * 5 + [[1, 2]])}, r"'f': .* found 2 after 1$"),
        ({"image": None, "tokens": tokens([[1]] * 5 + [[2**40]])}, r"must fit into 32 bits"),
    ],
)
def test_broken_examples(folder, changes, message):
    path = folder / "examples.parquet"
    columns = dict(zip((table := pq.read_table(path)).column_names, table.columns, strict=True))
    columns = {name: one for name, one in (columns | changes).items() if one is not None}
    pq.write_table(pa.table(columns), path)
    fails(folder, message)


def test_a_file_that_is_not_parquet(folder):
    path = folder / "examples.parquet"
    whole = path.read_bytes()
    draw = random.Random(0)
    for _ in range(60):
        place = draw.randrange(len(whole))
        path.write_bytes(whole[:place] + bytes([draw.randrange(256)]) + whole[place + 1 :])
        with suppress(DataError):
            read_defense_folder(folder)
    path.write_bytes(whole[: len(whole) // 2])
    fails(folder, "is not a readable parquet file")
    path.unlink()
    fails(folder, "own holds no defense set: there is no examples.parquet$")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"f": None}, r"features.safetensors has no features of 'f'$"),
        (
            {"f": torch.ones(4)},
            r"'f': features must be vectors of one length, .* \[4\] after \[3\]",
        ),
        ({"f": torch.ones(1, 3)}, r"'f': features must be vectors of one length"),
        ({"f": torch.ones(3, dtype=torch.int64)}, r"'f': features must be vectors"),
        ({"f": torch.full((3,), torch.nan)}, r"'f': features must be finite$"),
    ],
)
def test_broken_features(folder, changes, message):
    rows = {one: torch.ones(3) for one in "abcdef"} | changes
    rows = {one: row for one, row in rows.items() if row is not None}
    save_file(rows, folder / "features.safetensors")
    fails(folder, message)


def test_features_of_others_are_passed_over_and_a_broken_file_is_named(folder):
    save_file({one: torch.ones(3).half() for one in "abcdefgh"}, folder / "features.safetensors")
    assert read_defense_folder(folder).features.shape == (COUNT, 3)
    assert read_defense_folder(folder).features.dtype == torch.float32
    (folder / "features.safetensors").write_bytes(b"no")
    fails(folder, "features.safetensors is not a readable safetensors file")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": torch.zeros(COUNT, 1, 4, 4)}, r"got torch.float32 \[6, 1, 4, 4\]$"),
        ({"inputs": torch.zeros(COUNT, 2, 4, 4, dtype=torch.uint8)}, "inputs must be texts"),
        ({"inputs": ("one",)}, "one label an input: got 1 inputs, 6 labels"),
        ({"inputs": (), "labels": torch.zeros(0)}, "one label an input: got 0 inputs, 0 labels"),
        ({"known_clean": torch.zeros(2)}, "known_clean must have 6 rows, got 2"),
        ({"ids": ("a",)}, "ids must have 6 rows, got 1"),
        ({"notes": ("a",)}, "notes must have 6 rows, got 1"),
        ({"features": torch.zeros(2, 2)}, "features must have 6 rows, got 2"),
        ({"ids": tuple("aacdef")}, "ids: the id 'a' is there twice"),
    ],
)
def test_a_set_that_cannot_be(changes, message):
    with pytest.raises(DataError, match=message):
        source(**changes)


def test_colour_beside_grey():
    grey, colour = (from_file(png(mode=mode), mode) for mode in ("1", "P"))
    assert (grey.shape, colour.shape) == ((1, 5, 5), (3, 5, 5))


def test_extras_that_are_not_installed(folder, monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "PIL.Image", None)
    with pytest.raises(DataError, match=r"pip install 'datadefense\[data\]'$"):
        read_defense_folder(folder)
    with pytest.raises(DataError, match=r"pip install 'datadefense\[data\]'$"):
        write_defense_folder(source(), tmp_path / "other")
    assert not (tmp_path / "other").exists()
