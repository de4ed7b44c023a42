"""Agents that come with the bench: folders with a `config.yaml` and a `start.sh`, run as any other agent is."""
