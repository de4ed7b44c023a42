"""Copies the base and submits the copy as its own."""

import os
import shutil

from kev.autorl.agents.training import log_score, output
from kev.autorl.client import submit

shutil.copytree(os.environ["MODEL_PATH"], output() / "v1")
log_score(submit("output/v1"), "the base, copied")
