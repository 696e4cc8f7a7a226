"""What a defense needs is said before a run, in one sentence, wherever it is to work."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

import datadefense
from datadefense import Examples, NeedsError, Server
from datadefense.core.needs import Need, needs_words
from datadefense.defenses import DEFENSES, FedAvg, FlTrust, Krum
from datadefense.postaggregators import POSTAGGREGATORS
from datadefense.preaggregators import PREAGGREGATORS
from datadefense.testing import toy_round, toy_server


@dataclass(frozen=True, slots=True)
class ById(FedAvg):
    """A rule that knows clients again."""

    name: ClassVar[str] = "by-id"
    needs: ClassVar[Need] = Need.MODEL | Need.CLIENT_IDENTITY


def test_words():
    assert needs_words(Krum) == needs_words(Krum()) == ""
    assert needs_words(FlTrust) == "a model and clean examples on the server"
    assert needs_words(DEFENSES["datadefense"]) == "a model and a defense set on the server"
    assert needs_words(ById) == "a model on the server and clients that keep their ids"


def test_what_a_server_offers():
    full = toy_server()
    assert full.offers() == Need.MODEL | Need.CLEAN_EXAMPLES | Need.DEFENSE_SET
    assert Server().offers() == Need.NONE
    none = Examples(full.clean.inputs[:0], full.clean.labels[:0])
    assert Server(full.predict, none).offers() == Need.MODEL


@pytest.mark.parametrize("name", DEFENSES)
def test_a_defense_begins_where_its_needs_are_met_and_says_them_where_not(name):
    """Needs are neither too few nor too many: it begins with just these, and says so without."""
    defense, full, params = DEFENSES[name](), toy_server(), toy_round().global_params
    just = Server(
        full.predict if Need.MODEL in defense.needs else None,
        full.clean if Need.CLEAN_EXAMPLES in defense.needs else None,
        0,
        full.defense_set if Need.DEFENSE_SET in defense.needs else None,
    )
    defense.check_needs(just.offers() | Need.CLIENT_IDENTITY)
    defense.aggregate(defense.init(just, params), toy_round(), just)
    if defense.needs == Need.CLIENT_IDENTITY:
        with pytest.raises(NeedsError, match=f"{name} needs clients that keep their ids: auth"):
            defense.check_needs(full.offers())
    elif defense.needs:
        with pytest.raises(NeedsError, match=f"{name} needs {needs_words(defense)}: Server"):
            defense.check_needs(Server().offers())
        with pytest.raises(NeedsError, match=f"{name} needs {needs_words(defense)}: Server"):
            defense.init(Server(), params)


def test_the_sentence_says_where_to_read_on():
    with pytest.raises(NeedsError) as caught:
        ById().check_needs(Need.MODEL, "write to the nodes")
    said = "by-id needs a model on the server and clients that keep their ids: write to the nodes"
    assert str(caught.value) == f"{said}, see docs/defenses.md"
    assert (Path(__file__).parents[2] / "docs/defenses.md").exists()


@pytest.mark.parametrize("folder", ["core", "defense_sets", "simulation", "flower", "report"])
def test_no_general_code_knows_a_plug_in_by_its_name(folder):
    names = {*DEFENSES, *PREAGGREGATORS, *POSTAGGREGATORS} - {"datadefense", "median", "clip"}
    quoted = re.compile("|".join(rf'["\']{re.escape(name)}["\']' for name in names))
    root = Path(datadefense.__file__).parent / folder
    found = {
        str(path): match[0]
        for path in root.rglob("*.py")
        for match in [quoted.search(re.sub(r'"""(.|\n)*?"""', "", path.read_text()))]
        if match
    }
    assert not found
