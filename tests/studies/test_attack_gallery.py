"""The attack gallery: what there is data for, and a word for the rest."""

import pytest
import torch

pytest.importorskip("matplotlib")
from datadefense.studies import attack_gallery


def test_without_a_data_folder_only_the_embedded_digits(tmp_path, monkeypatch):
    monkeypatch.delenv("DATADEFENSE_DATA", raising=False)
    left_out = attack_gallery.draw_gallery(tmp_path, tmp_path / "gallery.png")
    assert list(left_out) == [row.setup for row in attack_gallery.ROWS[1:]] + ["sentiment-yl"]
    assert all(str(tmp_path) in reason for reason in left_out.values()), left_out
    assert (tmp_path / "gallery.png").stat().st_size > 1000


def test_pictures_are_between_0_and_1_and_their_colours_last():
    for image in (
        torch.randint(0, 256, (3, 4, 5), dtype=torch.uint8),
        torch.randn(1, 4, 5),
        torch.zeros(1, 4, 5),
    ):
        picture = attack_gallery._picture(image)
        assert picture.shape == (4, 5, len(image))
        assert float(picture.min()) == 0
        assert float(picture.max()) in (0.0, 1.0)
