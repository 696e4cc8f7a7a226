"""The overview's picture: a colour and a number for what was run, neither for what was not."""

import numpy as np
import pytest
from tests.studies.grid_results import FIGURES, made_up

pytest.importorskip("matplotlib")
from datadefense.studies.heat_map import draw_overview, heat_map
from datadefense.studies.overview import overview


def test_what_is_drawn_is_what_was_measured(tmp_path):
    found = overview(made_up(FIGURES))
    (panel,) = heat_map(found).axes
    assert [one.get_text() for one in panel.get_yticklabels()] == [
        "fedavg",
        "krum",
        "datadefense-learned",
    ]
    heads = [one.get_text() for one in panel.get_xticklabels()]
    assert heads == ["CIFAR-10\ntrigger\nloud", "digits\nquiet\n40 % of clients"]
    (image,) = panel.get_images()
    drawn = np.ma.filled(image.get_array().astype(float), np.nan)
    np.testing.assert_allclose(drawn, [[77, 99.6], [0.54, np.nan], [0, 0]])
    words = [text.get_text() for text in panel.texts]
    assert words == ["77", "100", "0.5\n-9 MA", "0.0", "0.0"]
    draw_overview(found, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
