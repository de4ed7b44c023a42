"""What holds for every test: the signals of a terminal, however the run was started, and no limits of wall time."""

import gc
import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# A run in the background of a script, or under nohup, ignores these, and so would every program that a test starts.
for _number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)

# A busy machine is slow, and that is no defect: tests bound CPU time, bytes and counts, never the wall clock.
settings.register_profile("kev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kev")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end: no search for garbage goes through all of it again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _state_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a dashboard keeps of how it was left goes to a directory of this run, and comes from none."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
