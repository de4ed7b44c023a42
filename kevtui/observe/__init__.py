"""Files and remote polls become one immutable Snapshot."""
