"""What a round of a run trained with and why it failed, read from its files. No command writes a journal of it yet.

sources, values
             Python read as a tree: what a name certainly stands for
training     what the source under code/ trains with, read and never run
section, lines
             a round as summary.md and summary.jsonl have it, however it was written
findings     a breach of the journal's rules, in words of two languages
failures     why a round failed, by named rules, each with the line that shows it
"""
