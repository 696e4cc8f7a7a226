"""The server's poison in another look: the same images as dealt, and only the patch differs."""

import os
from pathlib import Path

import pytest
import torch
from tests.tasks.fake_images import use_fake_images

from datadefense.attacks import poison
from datadefense.attacks.poison import Flip
from datadefense.attacks.poison_variants import LARGER, other_poison, recolour
from datadefense.attacks.trigger_patch import TriggerPatch, colours
from datadefense.core.content import content_keys
from datadefense.core.examples import Examples
from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError
from datadefense.runs.build import load_data
from datadefense.runs.configure import configure

REAL = Path(os.environ.get("DATADEFENSE_DATA") or Path(__file__).parents[3] / "shared" / "data")
PATCHES = {
    "same": colours(8),
    "recoloured": colours(8)[[2, 0, 1]],
    "larger": colours(LARGER),
    "corner": colours(8),
}
"""What is painted; recoloured: blue as red, red as green, green as blue."""
DEALT = torch.tensor([5, 2, 11, 7])


def noise(count, name, side=20):
    draw = generator(0, name)
    pixels = torch.randint(256, (count, 3, side, side), generator=draw, dtype=torch.uint8)
    return Examples(pixels, torch.ones(count, dtype=torch.int64))


def attack_sets():
    """Twelve cars called 2, with the trigger and, row by row, without."""
    cars, flip = (noise(12, "train"), noise(3, "test")), Flip((1,), 2, 12, 3)
    stamped = poison.trigger(*cars, flip, TriggerPatch(), generator(1, "draw"))
    return stamped, poison.label_flip(*cars, flip, generator(1, "draw"))


def places(image, base, patch):
    """Where the patch has been painted on the base, by trying everywhere."""
    size = patch.shape[1]
    found = []
    for row in range(base.shape[1] - size + 1):
        for column in range(base.shape[2] - size + 1):
            box = (slice(None), slice(row, row + size), slice(column, column + size))
            painted = base.clone()
            painted[box] = ((1 - 0.8) * base[box].double() + 0.8 * patch.double()).floor()
            if torch.equal(painted, image):
                found.append((row, column))
    return found


def same(left, right):
    return torch.equal(left.inputs, right.inputs) and torch.equal(left.labels, right.labels)


def dealt(task, view, folder=None, **changes):
    given = {key: str(value) for key, value in changes.items()}
    return load_data(configure(task, "cpu", {"poison_view": view, **given}), folder)


@pytest.fixture
def no_data(monkeypatch):
    use_fake_images(monkeypatch)


@pytest.mark.parametrize("view", ["recoloured", "larger", "corner"])
def test_only_the_patch_differs(view):
    stamped, plain = attack_sets()
    held = stamped.train.take(DEALT)
    made = other_poison(view, held, 0, stamped, plain)
    assert torch.equal(made.labels, held.labels)
    for image, base in zip(made.inputs, plain.train.inputs[DEALT], strict=True):
        assert len(places(image, base, PATCHES[view])) == 1


def test_the_corner_is_the_top_left():
    stamped, plain = attack_sets()
    made = other_poison("corner", stamped.train.take(DEALT), 0, stamped, plain)
    for image, base in zip(made.inputs, plain.train.inputs[DEALT], strict=True):
        assert places(image, base, colours(8)) == [(0, 0)]


@pytest.mark.parametrize("view", ["recoloured", "larger"])
def test_places_are_drawn_by_the_seed(view):
    stamped, plain = attack_sets()
    held = stamped.train.take(DEALT)
    first, again, other = (other_poison(view, held, seed, stamped, plain) for seed in (0, 0, 1))
    assert same(first, again)
    assert not same(first, other)


def test_each_colour_takes_the_next_ones_place():
    given = noise(2, "train").inputs
    red, green, blue = recolour(given).unbind(1)
    assert torch.equal(torch.stack([green, blue, red], dim=1), given)
    assert torch.equal(recolour(recolour(given), back=True), given)


def test_grey_images_cannot_be_recoloured():
    with pytest.raises(SettingsError, match=r"recoloured needs colours, got images \(1, 20, 20\)"):
        recolour(noise(2, "train").inputs[:, :1])


def test_without_a_trigger_the_whole_image_is_recoloured():
    held = noise(4, "found")
    made = other_poison("recoloured", held, 0, attack_sets()[0], None)
    assert same(made, Examples(recolour(held.inputs), held.labels))


@pytest.mark.parametrize("view", ["larger", "corner"])
def test_without_a_trigger_there_is_nothing_to_enlarge_or_move(view):
    with pytest.raises(SettingsError, match=f"must be same or recoloured here, got '{view}'"):
        other_poison(view, noise(4, "found"), 0, attack_sets()[0], None)


@pytest.mark.parametrize("view", ["larger", "corner"])
@pytest.mark.parametrize("task", ["cifar10-label-flip", "cifar10-southwest"])
@pytest.mark.usefixtures("no_data")
def test_a_task_without_a_trigger_says_which_looks_it_has(task, view):
    with pytest.raises(SettingsError) as caught:
        dealt(task, view)
    assert str(caught.value) == (
        "server.poison_view must be one of same, recoloured, relabelled, relabelled-any, triggers "
        f"with {task}, got '{view}'"
    )


@pytest.mark.parametrize("view", ["recoloured", "larger", "corner"])
@pytest.mark.usefixtures("no_data")
def test_nobody_else_notices(view):
    one, two = (
        dealt("cifar10-trigger", which, **{"server.poison": 10}) for which in ("same", view)
    )
    assert len(one.server_poison) == len(two.server_poison) == 10
    assert not set(content_keys(one.server_poison.inputs)) & set(
        content_keys(two.server_poison.inputs)
    )
    assert same(one.attacker.poison, two.attacker.poison)
    for part in ("clients", "server_clean", "backdoor_test"):
        assert same(getattr(one, part), getattr(two, part))


def bases(patched, cars):
    """Which car each patched image was: the one that differs in the fewest pixels."""
    pixels = [(cars != image).any(1).flatten(1).sum(1) for image in patched]
    assert max(int(counts.min()) for counts in pixels) <= LARGER**2
    return [int(counts.argmin()) for counts in pixels]


def check_looks(folder=None):
    """In every look the server's cars are those that were dealt, and none is the attacker's."""
    looks = {view: dealt("cifar10-trigger", view, folder) for view in PATCHES}
    warm = looks["same"].warm
    cars = warm.inputs[warm.labels == 1]
    servers = bases(looks["same"].server_poison.inputs[:30], cars)
    assert set(servers).isdisjoint(bases(looks["same"].attacker.poison.inputs, cars))
    for view, look in looks.items():
        found = look.server_poison.inputs[:30]
        assert bases(found, cars) == servers
        for image, car in list(zip(found, servers, strict=True))[:3]:
            assert len(places(image, cars[car], PATCHES[view])) == 1


@pytest.mark.usefixtures("no_data")
def test_cars_of_noise_are_the_same_in_every_look():
    check_looks()


@pytest.fixture
def real(decoded_images):
    if not (REAL / "cifar10" / "train.parquet").is_file():
        pytest.skip(f"no real data in {REAL}: set DATADEFENSE_DATA")
    assert decoded_images.is_dir()
    return REAL


@pytest.mark.slow
def test_real_cars_are_the_same_in_every_look(real):
    check_looks(real)
