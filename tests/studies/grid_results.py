"""Results of the study `targets` that tests make up."""

from dataclasses import replace

from tests.runs.summaries import SUMMARY

from datadefense.studies.store import Result
from datadefense.studies.studies import STUDIES


def made_up(figures):
    """Return a store's results: figures by labels of the study, and peace at 90 % accuracy."""
    points = {point.labels: point.experiment for point in STUDIES["targets"].points("cpu")}
    results = {}
    for labels, (excess, accuracy) in figures.items():
        one = points[labels]
        calm = one.without_attack()
        summary = replace(SUMMARY, excess_asr_percent=excess, ma_percent=accuracy)
        results[one.key()] = Result(one.key(), one.changes(), summary)
        peace = replace(SUMMARY, ma_percent=90.0)
        results[calm.key()] = Result(calm.key(), calm.changes(), peace)
    return results


LOUD = ("cifar10-trigger", "pgd-replacement", "every fifth round")
MANY = ("digits-edge", "pgd", "40 % of clients")
DULL = ("cifar10-trigger", "pgd", "every fifth round")
FIGURES = {
    (*LOUD, "fedavg"): (77.0, 88.0),
    (*LOUD, "krum"): (0.54, 81.4),
    (*LOUD, "datadefense-learned"): (-0.2, 90.0),
    (*MANY, "fedavg"): (99.6, 89.0),
    (*MANY, "datadefense-learned"): (0.0, 89.0),
    (*DULL, "fedavg"): (9.9, 90.0),
    (*DULL, "datadefense-learned"): (0.0, 90.0),
    ("digits-edge", "adaptive", "every fifth round", "fedavg"): (50.0, 90.0),
}
