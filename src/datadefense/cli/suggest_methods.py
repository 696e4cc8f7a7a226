"""The methods of ``datadefense defense-set suggest``, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from datadefense.cli.compared_models import ModelPlaces
from datadefense.cli.image_folder import read_images
from datadefense.cli.opened_task import Opened, say
from datadefense.core.examples import Examples
from datadefense.core.settings import SettingsError
from datadefense.defense_sets.folder import EXAMPLES, read_defense_folder
from datadefense.defense_sets.suggested_poison import Suggest
from datadefense.defense_sets.suggestions.candidates import Candidates
from datadefense.defense_sets.suggestions.disagreement import disagreement
from datadefense.defense_sets.suggestions.inversion import (
    OUTLIER,
    Search,
    invert,
    outliers,
    suspicious,
)
from datadefense.defense_sets.suggestions.relabelled import most_relabelled, relabelled
from datadefense.defense_sets.suggestions.triggers import check_images, triggers
from datadefense.defense_sets.suggestions.word_inversion import invert_word, put_word

LOGGED = 1000
"""Clean inputs of the task that stand for a log."""
TRIED = 400
"""Clean examples that patches and words are tried on."""


@dataclass(frozen=True, slots=True, eq=False)
class SuggestionContext:
    """What a method works with.

    Args:
        opened: the task.
        spare: clean examples of the server beyond those of its set, as a folder keeps them.
        sources: classes that may be turned; None: all.
        targets: what they may be turned into.
        count: candidates wanted.
        at_most: fewer will do.
        places: where models are.
        inputs: a folder of inputs that the server has seen; None: the task's.
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

    run: Callable[[SuggestionContext], Candidates]
    models: bool = False
    inputs: bool = False
    search: bool = False


def by_disagreement(context: SuggestionContext) -> Candidates:
    """Return inputs that the suspect model has turned, from a folder or from the task's server."""
    opened, folder = context.opened, context.inputs
    if folder is None:
        found = opened.data.as_stored(opened.data.server_poison.inputs)
        seen = torch.cat([context.spare.inputs[:LOGGED], found])
    elif (folder / EXAMPLES).exists():
        seen = opened.data.as_stored(opened.inputs(read_defense_folder(folder), folder))
    else:
        check_images(context.spare.inputs, "a folder of images")
        seen = read_images(folder, context.spare.inputs, opened.experiment.name_of("task"))[1]
    suspect, trusted = context.places.compared(opened).logits(seen)
    return disagreement(
        seen,
        trusted,
        suspect,
        context.count,
        sources=context.sources,
        targets=context.targets,
    )


def by_inversion(context: SuggestionContext) -> Candidates:
    """Return clean examples with the patch or the word that was found."""
    words = context.opened.data.vocabulary is not None
    return _by_word(context) if words else _by_patch(context)


def _by_patch(context: SuggestionContext) -> Candidates:
    models = context.places.compared(context.opened)
    patches = [
        invert(context.of_others(target), target, models, context.draw, context.search)
        for target in context.targets
    ]
    scores = outliers([patch.size for patch in patches])
    for patch, score in zip(patches, scores, strict=True):
        say(
            f"class {patch.target}: a patch of {patch.size:.0f} pixels turns {patch.turned:.0%}, "
            f"for the trusted model {patch.turned_trusted:.0%}; outlier score {score:.1f}"
        )
    found = {patch.target: patch for patch in suspicious(patches)}
    if max(scores[patches.index(patch)] for patch in found.values()) <= OUTLIER:
        say(
            f"warning: no outlier score is above {OUTLIER:g}, the smallest patch is taken: if it "
            "is no backdoor's, honest clients will be left out for learning it"
        )
    plain = context.turned_clean(relabelled, tuple(found))
    inputs = plain.examples.inputs.clone()
    for target, patch in found.items():
        here = plain.examples.labels == target
        inputs[here] = patch.stamp(inputs[here])
    origins = tuple(f"{origin} with a patch" for origin in plain.origins)
    return Candidates(Examples(inputs, plain.examples.labels), origins)


def _by_word(context: SuggestionContext) -> Candidates:
    vocabulary = context.opened.data.vocabulary
    models = context.places.compared(context.opened)
    names = () if vocabulary is None else vocabulary.words
    first = 0 if vocabulary is None else len(vocabulary) - len(names)
    words = range(first, first + len(names))
    found = [
        invert_word(context.of_others(target), target, words, models) for target in context.targets
    ]
    for word in found:
        say(
            f"class {word.target}: {names[word.token - first]!r} turns {word.turned:.0%}, for the "
            f"trusted model {word.turned_trusted:.0%}"
        )
    best = max(found, key=lambda word: word.turned - word.turned_trusted)
    plain = context.turned_clean(relabelled, (best.target,))
    examples = replace(plain.examples, inputs=put_word(plain.examples.inputs, best.token))
    origins = tuple(f"{origin} with {names[best.token - first]!r}" for origin in plain.origins)
    return Candidates(examples, origins)


METHODS: Mapping[str, Method] = {
    "relabelled": Method(lambda context: context.turned_clean(relabelled, context.targets)),
    "triggers": Method(lambda context: context.turned_clean(triggers, context.targets)),
    "disagreement": Method(by_disagreement, models=True, inputs=True),
    "inversion": Method(by_inversion, models=True, search=True),
}
"""The methods by name."""
