"""Evaluators, each in a process of its own that ends with the grading.

order        what such a process is told
arithmetic   word problems with numbers, made here or in a file in the form of GSM8K: exact match
decision     a frozen suite of this project: the share of right decisions
per_sample   a user's eval.py, one sample at a time in a sandbox
opencompass  a command that is called, and its summary

A module has `evaluate(order) -> Evaluation`; `kev.autorl.engines` has what generates text.
"""
