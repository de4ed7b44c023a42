"""Watching the agent bench: its files become a BenchSnapshot, which is painted as tables, lines, JSON or a screen."""
