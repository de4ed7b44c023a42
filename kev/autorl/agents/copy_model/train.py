"""Copies the base and submits the copy as its own."""

import os
import shutil
from pathlib import Path

from kev.autorl.agents.training import record
from kev.autorl.client import submit

target = Path(os.environ["OUTPUT_DIR"]) / "v1"
shutil.copytree(os.environ["MODEL_PATH"], target)
record(submit("output/v1"), "the base, copied")
