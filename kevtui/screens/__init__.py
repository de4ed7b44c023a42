"""What fills the terminal: the dashboard and what opens over it."""
