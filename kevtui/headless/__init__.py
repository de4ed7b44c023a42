"""A Snapshot without a screen: as tables once, as a line per change, as JSON."""
