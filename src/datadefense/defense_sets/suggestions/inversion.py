r"""Inversion: the smallest patch that turns clean images into one class for a suspect model.

As Neural Cleanse (Wang et al. 2019, "Neural Cleanse: Identifying and Mitigating Backdoor Attacks in
Neural Networks", S&P). For a class t, over a mask m in [0, 1] and a pattern p in [0, 255],

.. math::
    \min_{m, p} \; \mathbb{E}_x \bigl[ -\log f_t(x') - \log (1 - g_t(x')) \bigr]
    + \lambda \lVert m \rVert_1, \qquad x' = (1 - m) x + m p

with the suspect model's probability f and the trusted one's g. The second term is ours: a patch
that turns images for the trusted model too shows what a class looks like, not a backdoor. The
weight lambda grows while the patch works and falls while it does not, as theirs does; it works
where it turns an image for the suspect model and not for the trusted one. A class whose patch is
far smaller than the others' is likely to be a backdoor's target (`outliers`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, UInt8
from torch import Tensor
from torch.nn.functional import cross_entropy

from datadefense.core.settings import SettingsError, check_float, check_int, setting
from datadefense.defense_sets.suggestions.models import Models
from datadefense.defense_sets.suggestions.triggers import check_images

Pixels = Float[Tensor, "images channels height width"]
OUTLIER = 2.0
"""Outlier score from which on a class counts as found, as theirs."""
MANY = 0.75
"""Share of images that a patch must turn to count as working; less than what is searched for,
which is measured on batches only."""


@dataclass(frozen=True, slots=True)
class Search:
    """How a patch is searched for."""

    steps: int = setting(300, "steps of Adam")
    batch_size: int = setting(32, "images a step")
    learning_rate: float = setting(0.2, "step size of Adam")
    wanted: float = setting(0.9, "share of images that a patch must turn, for one model only")
    check_every: int = setting(10, "steps from one look at the size's weight to the next")
    first_weight: float = setting(0.001, "weight of the mask's size at first")
    factor: float = setting(1.5, "factor by which that weight grows or falls")

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "check_every"):
            check_int(name, getattr(self, name), 1)
        check_float("learning_rate", self.learning_rate, above=0)
        check_float("wanted", self.wanted, above=0, maximum=1)
        check_float("first_weight", self.first_weight, above=0)
        check_float("factor", self.factor, above=1)


@dataclass(frozen=True, slots=True, eq=False)
class Patch:
    """What was found for a class.

    Args:
        target: the class.
        mask: from 0 (the image stays) to 1 (the pattern covers it).
        pattern: colours from 0 to 255.
        turned: share of images that the suspect model calls the target with the patch.
        turned_trusted: the same of the trusted model.
    """

    target: int
    mask: Float[Tensor, "height width"]
    pattern: Float[Tensor, "channels height width"]
    turned: float
    turned_trusted: float

    @property
    def size(self) -> float:
        """Return the mask's sum: the pixels that it covers."""
        return float(self.mask.double().sum())

    def on(self, images: Pixels) -> Pixels:
        """Return images, as floats, with the patch."""
        return (1 - self.mask) * images + self.mask * self.pattern

    def stamp(
        self, images: UInt8[Tensor, "images channels height width"]
    ) -> UInt8[Tensor, "images channels height width"]:
        """Return images with the patch."""
        return self.on(images.to(torch.float32)).round().clamp(0, 255).to(torch.uint8)


def invert(
    images: UInt8[Tensor, "images channels height width"],
    target: int,
    models: Models,
    draw: torch.Generator,
    search: Search,
) -> Patch:
    """Return the smallest patch found that turns enough images, or else the last one tried.

    Args:
        images: clean ones of other classes than the target.
        target: the class to turn them into.
        models: the suspect one and the trusted one.
        draw: gives the first patch and the batches.
        search: how to search.
    """
    check_images(images, "inversion")
    if not len(images):
        raise SettingsError(f"inversion needs images of other classes than {target}, got none")
    pixels = images.to(torch.float32)
    raw_mask = torch.randn(images.shape[2:], generator=draw) - 1
    raw_pattern = torch.randn(images.shape[1:], generator=draw)
    raw = [raw_mask.requires_grad_(), raw_pattern.requires_grad_()]
    adam = torch.optim.Adam(raw, lr=search.learning_rate, betas=(0.5, 0.9))
    weight, hits, tried = search.first_weight, 0, 0
    best: tuple[float, Tensor, Tensor] | None = None
    for step in range(1, search.steps + 1):
        batch = pixels[torch.randint(len(pixels), (search.batch_size,), generator=draw)]
        mask, pattern = raw_mask.sigmoid(), 255 * raw_pattern.sigmoid()
        patched = (1 - mask) * batch + mask * pattern
        suspect, trusted = models.suspect(patched), models.trusted(patched)
        cost = turning_cost(suspect, trusted, target) + weight * mask.sum()
        adam.zero_grad()
        cost.backward()  # type: ignore[no-untyped-call]
        adam.step()
        turned = (suspect.argmax(1) == target) & (trusted.argmax(1) != target)
        hits, tried = hits + int(turned.sum()), tried + len(batch)
        if step % search.check_every == 0:
            works = hits >= search.wanted * tried
            size = float(mask.detach().double().sum())
            if works and (best is None or size < best[0]):
                best = size, mask.detach().clone(), pattern.detach().clone()
            weight = weight * search.factor if works else weight / search.factor
            hits = tried = 0
    with torch.no_grad():
        last = raw_mask.sigmoid(), 255 * raw_pattern.sigmoid()
        mask, pattern = last if best is None else best[1:]
        found = Patch(target, mask.detach(), pattern.detach(), 0.0, 0.0)
        shares = models.turned(found.stamp(images).to(torch.float32), target)
    return Patch(target, found.mask, found.pattern, *shares)


def turning_cost(suspect: Tensor, trusted: Tensor, target: int) -> Tensor:
    """Return the mean of -log f_t - log(1 - g_t), by the logits of both models."""
    wanted = torch.full((len(suspect),), target)
    others = torch.arange(trusted.shape[1]) != target
    spared = trusted.logsumexp(1) - trusted[:, others].logsumexp(1)
    return cross_entropy(suspect, wanted) + spared.mean()


def outliers(sizes: Sequence[float]) -> list[float]:
    """Return by how many deviations each size is below the median; 0 where all are alike.

    The deviation is 1.4826 times the median distance from the median, as in Wang et al.

    >>> outliers([50.0, 51.0, 49.0, 5.0])[3] > OUTLIER
    True
    """
    values = torch.tensor(sizes, dtype=torch.float64)
    middle = values.quantile(0.5)
    spread = 1.4826 * (values - middle).abs().quantile(0.5)
    if float(spread) == 0:
        return [0.0] * len(sizes)
    return [float(score) for score in (middle - values) / spread]


def suspicious(patches: Sequence[Patch]) -> list[Patch]:
    """Return the patches whose size is an outlier, or else the smallest; working ones only.

    A patch works if it turns `MANY` of the images for the suspect model, and fewer for the trusted
    one.
    """
    scores = outliers([patch.size for patch in patches])
    working = [
        (score, patch)
        for score, patch in zip(scores, patches, strict=True)
        if patch.turned >= MANY > patch.turned_trusted
    ]
    if not working:
        turned = max((patch.turned for patch in patches), default=0.0)
        raise SettingsError(
            f"a patch must turn >= {MANY:.0%} of the images, and fewer for the trusted model: no "
            f"class has one, the best turns {turned:.0%}"
        )
    found = [patch for score, patch in working if score > OUTLIER]
    return found or [min((patch for _, patch in working), key=lambda patch: patch.size)]
