"""What is said to an agent whose request is not taken: a status, a code that programs compare, and a line."""

from kev.errors import Refused

CODES = {
    "bad_request": 400,
    "bad_gpu": 400,
    "bad_path": 400,
    "path_outside": 400,
    "link": 400,
    "missing_model": 400,
    "adapter": 400,
    "no_safetensors": 400,
    "broken_weights": 400,
    "bad_config": 400,
    "model_too_large": 400,
    "unknown_submission": 404,
    "not_allowed": 403,
    "time_is_up": 403,
    "changed_while_read": 409,
    "too_large": 413,
    "no_submissions_left": 429,
    "disk_full": 507,
}
"""Every code and its HTTP status; docs/autorl.md says what each means."""


class Rejected(Refused):
    """A request that changes nothing; `code` is one of CODES."""

    def __init__(self, code: str, words: str) -> None:
        self.code = code
        self.status = CODES[code]
        super().__init__(words)
