"""Settings of all tests of the engine."""

import os
import tempfile

from hypothesis import settings

# A busy machine is slow, and that is no defect: tests bound CPU time, bytes and counts, never the wall clock.
settings.register_profile("kev", deadline=None)
settings.load_profile("kev")

# Trainings of tests are small, and several test processes may run on one machine.
os.environ.setdefault("KEV_TRAINING_LOCK", f"{tempfile.mkdtemp(prefix='kev-tests-')}/training.lock")
