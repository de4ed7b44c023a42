"""A container whose machine has become slow still hears what ends it."""

import signal

import pytest

from kev.emulator.container import Container
from kev.emulator.entities import Function, Task
from kev.emulator.plan import parse_plan
from kev.emulator.process import Process
from kev.emulator.termination import Terminator
from kev.emulator.timings import Timings
from kev.emulator.wire import pb


class Signals(Process):
    """A process that only takes note of its signals."""

    def __init__(self) -> None:
        self.sent: list[int] = []

    def signal(self, number: int) -> None:
        self.sent.append(number)


def container_with(process: Process) -> Container:
    definition = pb.Function(function_name="train", timeout_secs=60)
    function = Function(
        id="fu-1", app_id="ap-1", name="train", definition_bytes=definition.SerializeToString(), metadata_bytes=b""
    )
    container = Container(Task(id="ta-1", app_id="ap-1", function_id="fu-1", enqueued=0.0), function)
    container.process = process
    return container


@pytest.mark.parametrize(
    ("ending", "number"),
    [("time_out", signal.SIGUSR1), ("preempt", signal.SIGINT), ("cancel", signal.SIGTERM)],
)
async def test_what_ends_a_slow_container_lets_it_run_first(ending: str, number: int) -> None:
    plan = parse_plan({"container": [{"function": "tr*", "event": "slow", "at_log": "step 5/"}]})
    terminator, process = Terminator(Timings(), plan.container), Signals()
    container = container_with(process)

    terminator.printed(container, "step 5/20 loss 1.0")
    terminator.printed(container, "step 5/20 loss 1.0")  # once is what the plan says
    assert process.sent == [signal.SIGSTOP]

    endings = {"time_out": terminator.time_out, "preempt": terminator.preempt,
               "cancel": lambda each: terminator.stop(each, "cancelled")}  # fmt: skip
    endings[ending](container)
    assert process.sent[-2:] == [signal.SIGCONT, number]
    terminator.forget(container)
