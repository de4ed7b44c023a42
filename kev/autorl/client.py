"""What an agent in Python says to its grader: the routes of docs/autorl.md, with the standard library alone.

The address is in GRADING_SERVER_URL, which the runner sets.
"""

import json
import os
import urllib.error
import urllib.request
from typing import Any

from kev.errors import Refused, UsageError

URL_VARIABLE = "GRADING_SERVER_URL"


class NotTaken(Refused):
    """The grader's answer is an error; `code` is one of those that docs/autorl.md lists."""

    def __init__(self, code: str, words: str) -> None:
        super().__init__(f"{code}: {words}")
        self.code = code


def submit(model_path: str, *, wait: bool = True) -> dict[str, Any]:
    """Submit a directory, relative to the workspace, and wait for its score. Raises NotTaken, UsageError or OSError."""
    return _ask("/submit", {"model_path": model_path, "wait": wait})


def choose(submission_id: int) -> dict[str, Any]:
    """Make a submission the one that the final is graded on. Raises NotTaken, UsageError or OSError."""
    return _ask("/choose", {"submission_id": submission_id})


def seconds_left() -> float:
    """What is left of the run's time, by its own clock. Raises NotTaken, UsageError or OSError."""
    return float(_ask("/time")["remaining"])


def _ask(route: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    address = os.environ.get(URL_VARIABLE)
    if not address:
        raise UsageError(f"{URL_VARIABLE} is not set: this is said inside a run of `python -m kev.autorl run`")
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + route, data, {"content-type": "application/json"})
    # A grading takes as long as it takes; the run's own end is what ends the wait.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request) as answer:
            said = json.load(answer)
    except urllib.error.HTTPError as error:
        said = _error(error.read())
        raise NotTaken(said["code"], said["error"]) from None
    return dict(said)


def _error(data: bytes) -> dict[str, str]:
    try:
        value = json.loads(data)
        return {"code": str(value["code"]), "error": str(value["error"])}
    except (ValueError, KeyError, TypeError):
        return {"code": "internal", "error": "the answer is not the grader's"}
