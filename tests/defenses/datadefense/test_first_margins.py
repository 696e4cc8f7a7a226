import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.defenses.datadefense import sets, toys

from datadefense.defenses.datadefense.first_margins import first_margins, names_of

POOL = toys.defense_set(20, 10, 5)
choices = st.lists(st.sets(st.integers(0, 29), min_size=1), min_size=1, max_size=6)


@given(choices, st.integers(0, 12))
def test_the_first_margin_of_each_example_is_kept_and_the_oldest_absent_ones_go(parts, most):
    """Against a list in the order of arrival."""
    known, arrived = {}, []
    for today, chosen in enumerate(parts):
        owned = POOL.take(torch.tensor(sorted(chosen)))
        before = dict(known)
        names, asked = sets.names(owned), []

        def margins(owned=owned, day=today, asked=asked):
            asked.append(day)
            return torch.full((len(owned),), float(day))

        known = first_margins(known, owned, margins, most)
        new = [name for name in names if name not in before]
        assert len(asked) == bool(new), "the model is run only where an example is new"
        if new:
            absent = [name for name, _ in arrived if name not in names]
            dropped = absent[: max(0, len(absent) - most)]
            arrived = [pair for pair in arrived if pair[0] not in dropped]
            arrived += [(name, float(today)) for name in new]
        assert list(known.items()) == arrived


def test_with_another_label_an_example_is_new():
    assert names_of(POOL) == sets.names(POOL)
    assert len(set(names_of(POOL))) == 30
