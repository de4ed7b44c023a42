"""A made-up session that grows on the disk as a real one would, for `kevtui demo`.

Nothing is trained, read or paid for. Every file that a person would open says so, the money is called simulated, and
the screen shows SAMPLE. It is written through kev.records, so it can only take the shapes that real files take, by a
process of its own, as real sessions are.
"""
