import base64
import sys

import pytest
import torch

from datadefense import DefenseSet, Examples
from datadefense.data.image_files import from_file
from datadefense.data.text import Vocabulary
from datadefense.defense_sets.preview import Shown, gallery_of, read_gallery, write_gallery

pytest.importorskip("PIL")


def owned(inputs, **more):
    count = len(inputs)
    known = torch.arange(count) < 1
    labels = torch.arange(count)
    return DefenseSet(Examples(inputs, labels), known, torch.zeros(count, 2), **more)


def pixels(shown):
    return from_file(base64.b64decode(shown.picture), "here")


def test_photos_are_kept_as_they_are():
    photos = torch.randint(256, (3, 3, 32, 32), dtype=torch.uint8)
    gallery = gallery_of(owned(photos, ids=("a", "b", "c"), provenance=("clean", "", "poisoned")))
    assert [(one.id, one.label, one.known_clean, one.provenance) for one in gallery] == [
        ("a", 0, True, "clean"),
        ("b", 1, False, ""),
        ("c", 2, False, "poisoned"),
    ]
    for shown, photo in zip(gallery, photos, strict=True):
        assert torch.equal(pixels(shown), photo)


def test_normalised_digits_become_grey_levels():
    digits = torch.linspace(-0.42, 2.8, 2 * 28 * 28).reshape(2, 1, 28, 28)
    first, second = map(pixels, gallery_of(owned(digits)))
    assert (int(first[0, 0, 0]), int(second[0, -1, -1])) == (0, 255)
    assert first.shape == (1, 28, 28)
    assert bool((first.flatten().diff().int() >= 0).all())
    flat = gallery_of(owned(torch.full((1, 1, 28, 28), 0.3)))
    assert pixels(flat[0]).max() == 0


def test_large_images_are_thinned_out():
    assert pixels(gallery_of(owned(torch.zeros(1, 3, 224, 200)))[0]).shape == (3, 75, 67)


def test_texts_in_words_if_there_is_a_vocabulary():
    tokens = torch.tensor([[0, 2, 3], [0, 0, 1]], dtype=torch.int32)
    words = gallery_of(owned(tokens), Vocabulary(("love", "<b>movie</b>")))
    assert [one.text for one in words] == ["love <b>movie</b>", "..."]
    assert [one.text for one in gallery_of(owned(tokens))] == ["2 3", "1"]


def test_other_inputs_have_neither_picture_nor_text():
    (shown,) = gallery_of(owned(torch.zeros(1, 7)))
    assert shown.picture is None
    assert shown.text is None


def test_without_pillow_there_are_no_pictures(monkeypatch, datadefense_log):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    (shown,) = gallery_of(owned(torch.zeros(1, 1, 28, 28)))
    assert shown.picture is None
    assert "the report will have no pictures" in datadefense_log.text


def test_there_and_back(tmp_path):
    gallery = [Shown("a", 3, True, "x", None, "tweet"), Shown("b", 4, False, "", "iVBOR", None)]
    write_gallery(tmp_path / "gallery.json", gallery)
    assert read_gallery(tmp_path / "gallery.json") == gallery


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}x",
        "[3]",
        '[{"id": "a"}]',
        '[{"id": "a", "label": "b", "known_clean": true, "provenance": ""}]',
        '[{"id": "a", "label": 1, "known_clean": 1, "provenance": ""}]',
        '[{"id": "a", "label": 1, "known_clean": true, "provenance": "", "picture": 7}]',
    ],
)
def test_a_damaged_one_is_none(tmp_path, content):
    assert read_gallery(tmp_path / "gallery.json") is None
    (tmp_path / "gallery.json").write_text(content)
    assert read_gallery(tmp_path / "gallery.json") is None
