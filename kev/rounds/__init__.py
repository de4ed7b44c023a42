"""Rounds as data: loaded, validated, read out and confirmed."""
