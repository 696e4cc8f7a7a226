"""A summary for tests of what is made from summaries."""

from datadefense.runs.summary import Summary

SUMMARY = Summary(
    setup="digits-edge",
    scale="cpu",
    defense="median",
    attack="pgd",
    seed=0,
    rounds=3,
    ma_percent=91.5,
    asr_percent=80.0,
    asr_floor_percent=1.0,
    excess_asr_percent=79.0,
    peak_asr_percent=99.0,
    final_ma_percent=92.0,
    final_asr_percent=81.0,
    attacker_weight_mean=None,
    honest_excluded_percent=None,
    detector_hits_percent=None,
    lifespan_rounds=None,
    rejected_clients=0,
    seconds_per_round=0.5,
    seconds_training=0.3,
    seconds_attack=0.05,
    seconds_defense=0.1,
    seconds_evaluation=0.1,
    peak_memory_mb=300.0,
)
