"""What the emulator takes from the client's package, of which every version of 1.6 is admitted."""

import subprocess
import sys

import pytest

pytest.importorskip("modal", reason="the emulator speaks with the messages of the client")

from kev.emulator.wire import message_of, pb

HIDE_WHAT_CAME_LATER = """
import types, modal, modal_proto
from modal_proto import api_pb2 as real

later = ("KERNEL_OOM_KILL", "MEMORY_THRASHING_EVICTION", "FunctionCallCount", "InputBucket", "FunctionMetric")
first = types.ModuleType("modal_proto.api_pb2")
first.__dict__.update({name: each for name, each in vars(real).items() if not any(word in name for word in later)})
statuses = real.GenericResult.GenericStatus.items()
first.GenericResult = types.SimpleNamespace(
    **{name: number for name, number in statuses if not any(word in name for word in later)}
)
modal_proto.api_pb2 = first

import kev.emulator.__main__
from kev.emulator import calls, wire

assert wire.pb is first
assert wire.KERNEL_OOM_KILL == real.GenericResult.GENERIC_STATUS_INTERNAL_FAILURE
assert set(calls.INPUT_STATUS) == set(first.GenericResult.__dict__.values()) - {
    first.GenericResult.GENERIC_STATUS_UNSPECIFIED,
    first.GenericResult.GENERIC_STATUS_IDLE_TIMEOUT,
    first.GenericResult.GENERIC_STATUS_MEMORY_MANAGER_EVICTION,
}
assert calls.INPUT_STATUS[wire.KERNEL_OOM_KILL] == real.FUNCTION_CALL_INPUT_STATUS_INTERNAL_FAILURE
"""


def test_the_emulator_does_without_the_names_that_came_in_the_course_of_1_6() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", HIDE_WHAT_CAME_LATER], check=True)


def test_a_field_that_the_client_does_not_know_is_left_out() -> None:
    later = {"n_running_tasks": 3, "no_such_field": 1}
    item = message_of(pb.AppListResponse.AppListItem, later, name="night")

    assert (item.name, item.n_running_tasks) == ("night", 3)
