"""What a container can be asked for, one method for each remote function of modal_app.py."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kev.compute.claims import DictClaims
from kev.compute.leases import CLAIMS_DICT
from kev.errors import KevError
from kev.worker.container import Container
from kev.worker.locked import run_locked_test
from kev.worker.orders import BenchmarkOrder, LockedOrder, RescoreOrder, TrialOrder, parse_order
from kev.worker.reads import run_benchmark
from kev.worker.rescore import run_rescore
from kev.worker.trials import run_trial


def say(line: str) -> None:
    print(line, flush=True)


def answer(duty: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `duty` returns, or its expected failure in words: an exception would reach the launcher as a repr."""
    try:
        return duty()
    except KevError as error:
        say(f"Error: {error}")
        return {"refused": str(error)}


@dataclass(frozen=True, slots=True)
class Duties:
    """The work of one container. Payloads are orders of `kev.worker.orders` as JSON objects."""

    container: Container

    def trial(self, payload: dict[str, Any]) -> dict[str, Any]:
        return run_trial(parse_order(payload, TrialOrder), self.container, DictClaims(CLAIMS_DICT), say)

    def benchmark(self, payload: dict[str, Any]) -> dict[str, Any]:
        return answer(lambda: run_benchmark(parse_order(payload, BenchmarkOrder), self.container, say))

    def locked_test(self, payload: dict[str, Any]) -> dict[str, Any]:
        return answer(lambda: run_locked_test(parse_order(payload, LockedOrder), self.container, say))

    def rescore(self, payload: dict[str, Any]) -> dict[str, Any]:
        return answer(lambda: run_rescore(parse_order(payload, RescoreOrder), self.container, say))
