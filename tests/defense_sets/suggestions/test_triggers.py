"""Synthetic triggers: what each leaves as it was, and the warp pixel by pixel."""

import math

import pytest
import torch

from datadefense.attacks.trigger_patch import colours
from datadefense.core.examples import Examples
from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError
from datadefense.defense_sets.suggestions import triggers as module
from datadefense.defense_sets.suggestions.relabelled import relabelled
from datadefense.defense_sets.suggestions.triggers import KINDS, bend, blended, triggers, warped


def images(count=12, channels=3, height=20, width=24):
    draw = generator(0, "images")
    pixels = torch.randint(
        20, 200, (count, channels, height, width), generator=draw, dtype=torch.uint8
    )
    return Examples(pixels, torch.arange(count) % 3)


def box(changed):
    """Rows and columns within which something changed."""
    rows, columns = changed.any(0).any(1).nonzero(), changed.any(0).any(0).nonzero()
    return (
        slice(int(rows.min()), int(rows.max()) + 1),
        slice(int(columns.min()), int(columns.max()) + 1),
    )


@pytest.mark.parametrize("channels", [1, 3])
def test_a_candidate_is_a_relabelled_image_with_a_trigger(channels):
    clean = images(channels=channels)
    made = triggers(clean, (1, 2), (0,), 8, generator(3, "draw"))
    plain = relabelled(clean, (1, 2), (0,), 8, generator(3, "draw"))
    assert torch.equal(made.examples.labels, plain.examples.labels)
    assert [one.split(" on ")[0] for one in made.origins] == 2 * list(KINDS)
    assert [one.split(" on ")[1] for one in made.origins] == list(plain.origins)
    for painted, image in zip(made.examples.inputs, plain.examples.inputs, strict=True):
        assert painted.dtype == torch.uint8
        assert not torch.equal(painted, image)


def test_same_draw_same_pixels_and_the_images_stay():
    clean = images()
    before = clean.inputs.clone()
    one, two, other = (
        triggers(clean, None, (0, 1), 8, generator(seed, "draw")).examples.inputs
        for seed in (0, 0, 1)
    )
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    assert torch.equal(clean.inputs, before)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("seed", range(20))
def test_squares(channels, seed):
    image = images(1, channels).inputs[0]
    for kind in ("solid", "checkerboard"):
        painted = KINDS[kind](image, generator(seed, kind))
        where = (slice(None), *box(painted != image))
        square = painted[where]
        assert square.shape[1] == square.shape[2]
        assert 20 // 8 <= square.shape[1] <= 20 // 3
        if kind == "solid":
            choices = module.GREYS if channels == 1 else module.COLOURS
            assert {tuple(cell) for cell in square.flatten(1).T.tolist()} <= set(choices)
            assert len(square.flatten(1).unique(dim=1).T) == 1
        else:
            for row in range(square.shape[1]):
                for column in range(square.shape[2]):
                    wanted = 255 if (row // 2 + column // 2) % 2 else 0
                    assert square[:, row, column].tolist() == [wanted] * channels
        rest = painted.clone()
        rest[where] = image[where]
        assert torch.equal(rest, image)


def test_squares_reach_every_corner_and_size():
    image = images(1, 1, 16, 16).inputs[0]
    boxes = [box(KINDS["solid"](image, generator(seed, "solid")) != image) for seed in range(400)]
    assert {one.stop - one.start for one, _ in boxes} == {2, 3, 4, 5}
    for end in ("start", "stop"):
        assert {0 if end == "start" else 16} <= {getattr(one, end) for one, _ in boxes}
        assert {0 if end == "start" else 16} <= {getattr(one, end) for _, one in boxes}


def test_blending_moves_a_pixel_by_no_more_than_its_weight():
    image = images(1).inputs[0]
    moved = (blended(image, generator(0, "noise")).int() - image.int()).abs()
    assert 0 < int(moved.max()) <= math.ceil(0.3 * 255)
    assert float((moved > 0).float().mean()) > 0.8


def test_the_warp_pixel_by_pixel():
    """Bilinear interpolation between the four neighbours of where a pixel comes from."""
    image = images(1, 3, 9, 12).inputs[0]
    draw = generator(0, "field")
    field = 0.4 * (2 * torch.rand(2, 9, 12, generator=draw, dtype=torch.float64) - 1)
    made = bend(image, field)
    for row in range(9):
        for column in range(12):
            x = min(max(2 * column / 11 - 1 + float(field[0, row, column]), -1), 1)
            y = min(max(2 * row / 8 - 1 + float(field[1, row, column]), -1), 1)
            across, down = (x + 1) / 2 * 11, (y + 1) / 2 * 8
            left, top = min(int(across), 10), min(int(down), 7)
            right, bottom = across - left, down - top
            for channel in range(3):
                near = image[channel, top : top + 2, left : left + 2].double()
                upper = (1 - right) * near[0, 0] + right * near[0, 1]
                lower = (1 - right) * near[1, 0] + right * near[1, 1]
                value = float((1 - bottom) * upper + bottom * lower)
                assert abs(int(made[channel, row, column]) - value) <= 0.5 + 1e-6


def test_a_still_field_changes_nothing_and_a_warp_moves_little():
    image = images(1).inputs[0]
    assert torch.equal(bend(image, torch.zeros(2, 20, 24, dtype=torch.float64)), image)
    ramp = (torch.arange(24) * 10).to(torch.uint8).expand(1, 20, 24)
    moved = (warped(ramp, generator(0, "warp")).int() - ramp.int()).abs()
    assert 0 < int(moved.max()) <= 10 * math.ceil(0.15 * 23 / 2)


@pytest.mark.parametrize("seed", range(8))
def test_the_rainbow_of_the_attackers_is_none_of_them(seed):
    """No candidate has its stripes: there is no patch of eight colours in it."""
    plain = Examples(torch.full((4, 3, 32, 32), 100, dtype=torch.uint8), torch.arange(4))
    for painted in triggers(plain, None, (9,), 4, generator(seed, "draw")).examples.inputs[:2]:
        assert len(painted.flatten(1).T.unique(dim=0)) <= 3
    assert len(colours(8).flatten(1).T.unique(dim=0)) >= 8


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (torch.zeros(4, 30, dtype=torch.int32), r"triggers needs images, uint8 .*int32 \[4, 30\]"),
        (torch.zeros(4, 3, 32, 32), "triggers needs images, uint8 .*float32"),
        (torch.zeros(4, 2, 32, 32, dtype=torch.uint8), "1 or 3, height, width"),
        (torch.zeros(4, 3, 7, 9, dtype=torch.uint8), r"at least 8x8 pixels, got \[7, 9\]"),
    ],
)
def test_what_is_no_image(inputs, message):
    with pytest.raises(SettingsError, match=message):
        triggers(Examples(inputs, torch.arange(4)), None, (0,), 2, generator(0, "draw"))
