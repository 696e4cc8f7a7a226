import dataclasses

import pytest
from tests.runs.summaries import SUMMARY

from datadefense.report.conclusion import outcome, overall, verdict

HELD = {"final_asr_percent": 2.0}


def figures(**changes):
    return dataclasses.asdict(SUMMARY) | changes


@pytest.mark.parametrize(
    ("changes", "found", "words"),
    [
        ({**HELD, "excess_asr_percent": 1.0}, "kept out", "The backdoor was kept out."),
        (
            {"excess_asr_percent": 4.0, "asr_percent": 5.0, "final_asr_percent": 24.0},
            "partly",
            "5.0 % of unseen poisoned examples got the attacker's label, against 1.0 % without "
            "attack, and 24.0 % after the last round.",
        ),
        (
            {"excess_asr_percent": -4.0, "asr_floor_percent": 55.0},
            "unclear",
            "cannot be judged. 55.0 % of unseen poisoned examples get the attacker's label without",
        ),
        ({"excess_asr_percent": 60.0, "asr_floor_percent": 30.0}, "got in", "The backdoor got in."),
        ({"excess_asr_percent": 20.0}, "partly", "The backdoor got in partly."),
        ({"excess_asr_percent": 90.0}, "got in", "The backdoor got in."),
        ({"attack": "none"}, "calm", "Nobody attacked."),
        (
            {**HELD, "excess_asr_percent": 1.0, "ma_percent": 80.0, "calm_ma_percent": 90.0},
            "damaged",
            "The backdoor was kept out, but the model was damaged.",
        ),
        (
            {**HELD, "excess_asr_percent": 1.0, "ma_percent": 80.1, "calm_ma_percent": 90.0},
            "kept out",
            "9.9 points less than",
        ),
        (
            {"excess_asr_percent": 90.0, "ma_percent": 10.0, "calm_ma_percent": 90.0},
            "got in",
            "80.0 points less than",
        ),
        (
            {"excess_asr_percent": None, "asr_floor_percent": None},
            "unknown",
            "is not known yet. 80.0 % of unseen poisoned examples got the attacker's label.",
        ),
    ],
)
def test_what_became_of_the_backdoor(changes, found, words):
    assert outcome(figures(**changes)) == found
    assert words in verdict(figures(**changes))


def test_the_floor_is_named():
    assert "80.0 % of unseen poisoned" in verdict(figures())
    assert "against 1.0 % without attack" in verdict(figures())


@pytest.mark.parametrize(
    ("calm", "words"),
    [
        (None, "Clean accuracy is 91.5 %."),
        (91.7, "about the same as the 91.7 %"),
        (95.0, "3.5 points less than the 95.0 %"),
        (90.0, "1.5 points more than the 90.0 %"),
    ],
)
def test_what_it_cost(calm, words):
    assert words in verdict(figures(calm_ma_percent=calm))


def test_a_run_that_was_never_evaluated():
    assert outcome(None) == "unknown"
    assert verdict(None) == "No round has been evaluated yet."


def test_several_runs_in_a_sentence_each():
    outcomes = ["got in", "kept out", "kept out", "unknown", "kept out", "damaged"]
    assert overall("abcdef", outcomes) == (
        "b, c and e kept the backdoor out. f kept it out but damaged the model. a let it in. "
        "d cannot be judged yet."
    )
