"""The data of the decision model: records, generators whose labels a solver decides, and the freezing of suites."""
