"""Reads: a predictor's answers to the records of a partition or a file; no answer that was given is lost.

records    what is to be read: a suite's partition, or a file of records
rows       a prediction as rows.json holds it
journal    predictions.jsonl, one line a record, and read.json, which says what they are predictions of
read       the loop: what is missing is asked, and every answer is written before it counts
attempt    one attempt at a read: lock, journal, loop, files
assembly   rows.json and report.json, from the journal
mechanism  whether an answer depends on what else is asked (in-trial gates)

A read that died is continued by repeating it: `read.json` holds everything its rows depend on, and a predictor or a
partition that differs in any of it is refused.
"""
