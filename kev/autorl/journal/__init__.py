"""The iteration journal of a run: `reports/summary.md`, a section a round, and `reports/summary.jsonl`, its figures.

sources, values
             Python read as a tree: what a name certainly stands for
training     what the source under code/ trains with, read and never run
failures     why a round failed, by named rules, each with the line that shows it
"""
