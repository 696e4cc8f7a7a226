"""The methods of ``datadefense defense-set suggest``, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from datadefense.cli.compared_models import ModelPlaces
from datadefense.cli.image_folder import read_images
from datadefense.cli.opened_setup import Opened, say
from datadefense.data.defense_folder import EXAMPLES, read_defense_folder
from datadefense.examples import Examples
from datadefense.experiments.kept_inputs import as_kept
from datadefense.experiments.suggested_poison import Suggest
from datadefense.settings import SettingsError
from datadefense.suggestions.candidates import Candidates
from datadefense.suggestions.disagreement import disagreement
from datadefense.suggestions.inversion import OUTLIER, Search, invert, outliers, suspicious
from datadefense.suggestions.relabelled import most_relabelled, relabelled
from datadefense.suggestions.triggers import check_images, triggers
from datadefense.suggestions.word_inversion import invert_word, put_word

LOGGED = 1000
"""Clean inputs of the setup that stand for a log."""
TRIED = 400
"""Clean examples that patches and words are tried on."""


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """What a method works with.

    Args:
        opened: the setup.
        spare: clean examples of the server beyond those of its set, as a folder keeps them.
        sources: classes that may be turned; None: all.
        targets: what they may be turned into.
        count: candidates wanted.
        at_most: fewer will do.
        places: where models are.
        inputs: a folder of inputs that the server has seen; None: the setup's.
        draw: gives random numbers.
        search: how a patch is searched for.
    """

    opened: Opened
    spare: Examples
    sources: tuple[int, ...] | None
    targets: tuple[int, ...]
    count: int
    at_most: bool
    places: ModelPlaces
    inputs: Path | None
    draw: torch.Generator
    search: Search

    def turned_clean(self, suggest: Suggest, targets: tuple[int, ...]) -> Candidates:
        """Return clean examples labelled with the targets, and painted or not."""
        targets = tuple(target for target in targets if (target,) != self.sources)
        if not targets:
            raise SettingsError("--from and --to leave nothing to turn: they name one class")
        count = self.count
        if self.at_most:
            count = min(count, most_relabelled(self.spare, self.sources, targets) or count)
        return suggest(self.spare, self.sources, targets, count, self.draw)

    def of_others(self, target: int) -> Tensor:
        """Return clean inputs of the sources that are not of the target's class."""
        others = self.spare.labels != target
        if self.sources is not None:
            others &= torch.isin(self.spare.labels, torch.tensor(self.sources))
        return self.spare.inputs[others][:TRIED]


@dataclass(frozen=True, slots=True)
class Method:
    """A method, and which options it has a use for."""

    run: Callable[[Situation], Candidates]
    models: bool = False
    inputs: bool = False
    search: bool = False


def by_disagreement(situation: Situation) -> Candidates:
    """Return inputs that the suspect model has turned, from a folder or from the setup's server."""
    opened, folder = situation.opened, situation.inputs
    if folder is None:
        found = as_kept(opened.material.server_poison.inputs)
        seen = torch.cat([situation.spare.inputs[:LOGGED], found])
    elif (folder / EXAMPLES).exists():
        seen = as_kept(opened.inputs(read_defense_folder(folder), folder))
    else:
        check_images(situation.spare.inputs, "a folder of images")
        seen = read_images(folder, situation.spare.inputs, opened.experiment.setup)[1]
    suspect, trusted = situation.places.compared(opened).logits(seen)
    return disagreement(
        seen,
        trusted,
        suspect,
        situation.count,
        sources=situation.sources,
        targets=situation.targets,
    )


def by_inversion(situation: Situation) -> Candidates:
    """Return clean examples with the patch or the word that was found."""
    words = situation.opened.material.vocabulary is not None
    return _by_word(situation) if words else _by_patch(situation)


def _by_patch(situation: Situation) -> Candidates:
    models = situation.places.compared(situation.opened)
    patches = [
        invert(situation.of_others(target), target, models, situation.draw, situation.search)
        for target in situation.targets
    ]
    scores = outliers([one.size for one in patches])
    for one, score in zip(patches, scores, strict=True):
        say(
            f"class {one.target}: a patch of {one.size:.0f} pixels turns {one.turned:.0%}, for the "
            f"trusted model {one.turned_trusted:.0%}; outlier score {score:.1f}"
        )
    found = {one.target: one for one in suspicious(patches)}
    if max(scores[patches.index(one)] for one in found.values()) <= OUTLIER:
        say(
            f"warning: no outlier score is above {OUTLIER:g}, the smallest patch is taken: if it "
            "is no backdoor's, honest clients will be left out for learning it"
        )
    plain = situation.turned_clean(relabelled, tuple(found))
    inputs = plain.examples.inputs.clone()
    for target, patch in found.items():
        here = plain.examples.labels == target
        inputs[here] = patch.stamp(inputs[here])
    origins = tuple(f"{one} with a patch" for one in plain.origins)
    return Candidates(Examples(inputs, plain.examples.labels), origins)


def _by_word(situation: Situation) -> Candidates:
    vocabulary = situation.opened.material.vocabulary
    models = situation.places.compared(situation.opened)
    names = () if vocabulary is None else vocabulary.words
    first = 0 if vocabulary is None else len(vocabulary) - len(names)
    words = range(first, first + len(names))
    found = [
        invert_word(situation.of_others(target), target, words, models)
        for target in situation.targets
    ]
    for one in found:
        say(
            f"class {one.target}: {names[one.token - first]!r} turns {one.turned:.0%}, for the "
            f"trusted model {one.turned_trusted:.0%}"
        )
    best = max(found, key=lambda one: one.turned - one.turned_trusted)
    plain = situation.turned_clean(relabelled, (best.target,))
    examples = replace(plain.examples, inputs=put_word(plain.examples.inputs, best.token))
    origins = tuple(f"{one} with {names[best.token - first]!r}" for one in plain.origins)
    return Candidates(examples, origins)


METHODS: Mapping[str, Method] = {
    "relabelled": Method(lambda one: one.turned_clean(relabelled, one.targets)),
    "triggers": Method(lambda one: one.turned_clean(triggers, one.targets)),
    "disagreement": Method(by_disagreement, models=True, inputs=True),
    "inversion": Method(by_inversion, models=True, search=True),
}
"""The methods by name."""
