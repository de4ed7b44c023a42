"""`python -m kev.autorl submit output/v1`: what an agent in a shell calls to submit a model.

It prints the grader's answer as JSON, once the model is graded.
"""

import argparse

from kev import files
from kev.autorl.client import submit
from kev.console import run as run_command
from kev.errors import Refused


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns the exit code: 0 with a score, 1 without."""
    parser = argparse.ArgumentParser(
        prog="python -m kev.autorl submit", description="Submit a model from inside a run, and print what it scored."
    )
    parser.add_argument("model_path", help="its directory, relative to the workspace")
    options = parser.parse_args(arguments)
    return run_command(lambda: _submit(options.model_path))


def _submit(model_path: str) -> int:
    try:
        said = submit(model_path)
    except OSError as error:
        raise Refused(f"the grader does not answer ({error})") from None
    print(files.dump_json(said).decode(), end="")
    return 0 if said.get("score") is not None else 1
