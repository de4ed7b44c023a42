"""A terminal dashboard over unattended research sessions."""
