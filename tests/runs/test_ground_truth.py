from datadefense.runs.ground_truth import is_poisoned, poisoned_ids


def test_only_what_is_known_to_be_poisoned_is():
    assert is_poisoned("poisoned")
    for other in ("clean", "", "Poisoned", "a folder of poisoned things"):
        assert not is_poisoned(other)


def test_ids():
    pairs = [("a", "clean"), ("b", "poisoned"), ("c", ""), ("d", "poisoned")]
    assert poisoned_ids(pairs) == {"b", "d"}
