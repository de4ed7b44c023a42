"""Settings of all tests of the engine."""

from hypothesis import settings

# A busy machine is slow, and that is no defect: tests bound CPU time, bytes and counts, never the wall clock.
settings.register_profile("kev", deadline=None)
settings.load_profile("kev")
