"""The ledger: every unit of remote work, from before it is spawned until nothing more is spent on it.

units   what the events come to: units, their attempts, and what they can still cost
book    the file: reading it, refusing it, and the one way to add to it
places  where a unit writes
views   spawn.json and read.json, the public shape of what the ledger holds
"""
