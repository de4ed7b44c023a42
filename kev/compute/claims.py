"""Claims kept in a modal Dict. For code in containers and for the watcher alike."""

from collections.abc import Callable
from typing import Any, TypeVar

from kev.compute.classify import error_of
from kev.compute.client import load_modal

Answer = TypeVar("Answer")


class DictClaims:
    """Keys of a Dict. An entry that nobody asks for is dropped by the platform after a week."""

    def __init__(self, name: str, *, environment: str | None = None, client: Any = None) -> None:
        modal = load_modal()
        self._dict = modal.Dict.from_name(name, environment_name=environment, create_if_missing=True, client=client)

    def put_new(self, key: str) -> bool:
        return bool(_asked(lambda: self._dict.put(key, True, skip_if_exists=True), f"claim {key}"))

    def has(self, key: str) -> bool:
        return bool(_asked(lambda: self._dict.contains(key), f"look for claim {key}"))


def _asked(question: Callable[[], Answer], doing: str) -> Answer:
    try:
        return question()
    except Exception as error:
        raise error_of(error, doing) from error
