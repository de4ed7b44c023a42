"""One widget a file; each reads a Snapshot and emits messages."""
