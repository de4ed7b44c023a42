"""What a round of a run trained with and why it failed, read from its files. No command writes a journal of it yet.

sources, values
             Python read as a tree: what a name certainly stands for
training     what the source under code/ trains with, read and never run
failures     why a round failed, by named rules, each with the line that shows it
"""
