"""The journal of a run: what an agent did in each round, written beside the machine's figures and held against them.

command      `python -m kev.autorl journal append | check | repair`
writing, written, seals
             a round appended once, whole or not at all; the files that hold it; what was put down of it beside them
compose, excerpts
             a round from the files of its run, with the caller's prose
checking, check_form, check_figures, check_prose, check_lines
             the ten rules, over a journal by whomever it was written
correcting, corrected_order, corrected_fields
             a journal put right: every round in order, its figures the machine's, no prose lost
findings     a breach of them, in words of two languages
facts, rounds
             what the machine's files say, and which submission a round tells of
section, lines
             a round as summary.md and summary.jsonl have it, however it was written
failures     why a round failed, by named rules, each with the line that shows it
sources, values
             Python read as a tree: what a name certainly stands for
training     what the source under code/ trains with, read and never run
"""
