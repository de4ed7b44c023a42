"""What a container can be asked for, one method for each remote function of modal_app.py."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kev.compute.claims import DictClaims
from kev.compute.leases import CLAIMS_DICT
from kev.errors import KevError
from kev.records.base import AnyRecord
from kev.worker.agent_runs import run_agent
from kev.worker.blends import run_interpolation
from kev.worker.container import Container
from kev.worker.locked import run_locked_test
from kev.worker.mirrors import run_mirror
from kev.worker.orders import (
    AgentOrder,
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


@dataclass(frozen=True, slots=True)
class Duties:
    """The work of one container. Payloads are orders of `kev.worker.orders` as JSON objects."""

    container: Container

    def trial(self, payload: dict[str, Any]) -> dict[str, Any]:
        return run_trial(parse_order(payload, TrialOrder), self.container, DictClaims(CLAIMS_DICT), say)

    def benchmark(self, payload: dict[str, Any]) -> dict[str, Any]:
        return self._answer(run_benchmark, payload, BenchmarkOrder)

    def locked_test(self, payload: dict[str, Any]) -> dict[str, Any]:
        return self._answer(run_locked_test, payload, LockedOrder)

    def interpolate(self, payload: dict[str, Any]) -> dict[str, Any]:
        return self._answer(run_interpolation, payload, BlendOrder)

    def mirror(self, payload: dict[str, Any]) -> dict[str, Any]:
        return self._answer(run_mirror, payload, MirrorOrder)

    def agent(self, payload: dict[str, Any]) -> dict[str, Any]:
        return self._answer(run_agent, payload, AgentOrder)

    def rescore(self, payload: dict[str, Any]) -> dict[str, Any]:
        return self._answer(run_rescore, payload, RescoreOrder)

    def _answer(
        self, duty: Callable[[AnyRecord, Container, Callable[[str], None]], dict[str, Any]], payload: dict[str, Any],
        shape: type[AnyRecord],
    ) -> dict[str, Any]:  # fmt: skip
        """What `duty` returns, or its expected failure in words: an exception would reach the launcher as a repr.

        Files are named as the launcher knows them, wherever the volume is.
        """
        try:
            return duty(parse_order(payload, shape), self.container, say)
        except KevError as error:
            words = str(error).replace(str(self.container.runs.path), "/runs")
            say(f"Error: {words}")
            return {"refused": words}
