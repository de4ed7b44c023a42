"""The research engine: rounds of training studies launched, watched, read and compared under registered rules."""
