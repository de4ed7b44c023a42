"""What changes a session: each action is checks on a fresh read, a preview, and one command of the engine."""
