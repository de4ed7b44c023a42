"""The panels of a bench's screen. They read a BenchSnapshot and nothing else."""
