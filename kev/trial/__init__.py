"""A trial: training, in-trial scoring, gates, and the files that say what came of it.

provenance   what a trial's figures depend on, and whether it may be continued or scored again
scoring      the in-trial reads: calibration, development, transfer
gates        what a trial must pass to be worth a look; it decides nothing
job          one trial from its configuration to result.json
tools        what really trains and scores: kev.train, and checkpoints by torch
study        the trials of a plan, one after another on this machine
ranking      results.jsonl, and each trial beside the study's baseline
"""
