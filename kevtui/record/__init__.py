"""A night in one file that can be given away: recorded without anything secret, and opened with suspicion."""
