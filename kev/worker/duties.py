"""What a container can be asked for, one method for each remote function of modal_app.py."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kev.compute.claims import DictClaims
from kev.compute.leases import CLAIMS_DICT
from kev.errors import KevError
from kev.worker.blends import run_interpolation
from kev.worker.container import Container
from kev.worker.locked import run_locked_test
from kev.worker.mirrors import run_mirror
from kev.worker.orders import (
    BenchmarkOrder,
    BlendOrder,
    LockedOrder,
    MirrorOrder,
    RescoreOrder,
    TrialOrder,
    parse_order,
)
from kev.worker.reads import run_benchmark
from kev.worker.rescore import run_rescore
from kev.worker.trials import run_trial


def say(line: str) -> None:
    print(line, flush=True)


def answer(duty: Callable[[], dict[str, Any]], container: Container) -> dict[str, Any]:
    """What `duty` returns, or its expected failure in words: an exception would reach the launcher as a repr.

    Files are named as the launcher knows them, wherever the volume is.
    """
    try:
        return duty()
    except KevError as error:
        words = str(error).replace(str(container.runs.path), "/runs")
        say(f"Error: {words}")
        return {"refused": words}


@dataclass(frozen=True, slots=True)
class Duties:
    """The work of one container. Payloads are orders of `kev.worker.orders` as JSON objects."""

    container: Container

    def trial(self, payload: dict[str, Any]) -> dict[str, Any]:
        return run_trial(parse_order(payload, TrialOrder), self.container, DictClaims(CLAIMS_DICT), say)

    def benchmark(self, payload: dict[str, Any]) -> dict[str, Any]:
        return answer(lambda: run_benchmark(parse_order(payload, BenchmarkOrder), self.container, say), self.container)

    def locked_test(self, payload: dict[str, Any]) -> dict[str, Any]:
        return answer(lambda: run_locked_test(parse_order(payload, LockedOrder), self.container, say), self.container)

    def interpolate(self, payload: dict[str, Any]) -> dict[str, Any]:
        return answer(lambda: run_interpolation(parse_order(payload, BlendOrder), self.container, say), self.container)

    def mirror(self, payload: dict[str, Any]) -> dict[str, Any]:
        return answer(lambda: run_mirror(parse_order(payload, MirrorOrder), self.container, say), self.container)

    def rescore(self, payload: dict[str, Any]) -> dict[str, Any]:
        return answer(lambda: run_rescore(parse_order(payload, RescoreOrder), self.container, say), self.container)
