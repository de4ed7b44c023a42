"""Turns files into Snapshots."""
