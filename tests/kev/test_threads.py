"""A process computes with the cores it was given: never more, and libraries that load later know it too."""

import os
import subprocess
import sys

import pytest

from kev.errors import UsageError
from kev.threads import OMP, Threads, cores_given, threads_for


def test_the_cores_given_are_shared_among_the_processes_and_never_none() -> None:
    for cores, processes, threads in [(8, 2, 4), (2, 2, 1), (2, 5, 1), (7, 2, 3), (1, 1, 1)]:
        assert threads_for(cores, processes=processes) == Threads(threads, cores, processes)


@pytest.mark.parametrize(("wish", "threads"), [("3", 3), ("2,4", 2), (" 1 ", 1)])
def test_the_wish_of_whoever_started_the_process_counts_where_no_cores_are_named(wish: str, threads: int) -> None:
    assert threads_for(environment={OMP: wish}).threads == threads
    assert threads_for(6, environment={OMP: wish}).threads == 6


@pytest.mark.parametrize("wish", ["", "0", "-1", "many", "²"])
def test_a_wish_that_is_no_number_is_as_good_as_none(wish: str) -> None:
    assert threads_for(environment={OMP: wish}).threads == cores_given()


@pytest.mark.parametrize(
    ("limit", "cores"), [("150000 100000", 1), ("50000 100000", 1), ("100000 100000", 1), ("nonsense", None)]
)
def test_a_containers_quota_bounds_the_cores(limit: str, cores: int | None) -> None:
    scheduled = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert cores_given(limit=limit) == (cores or scheduled)
    assert cores_given(limit="max 100000") == scheduled
    assert cores_given(limit="100000000 100000") == scheduled


@pytest.mark.parametrize(("cores", "processes"), [(0, 1), (-2, 1), (2, 0)])
def test_no_cores_and_no_processes_are_refused(cores: int, processes: int) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        threads_for(cores, processes=processes)


@pytest.mark.parametrize(
    "first", ["use_cores(1)", "import torch", "import torch; torch.ones(300, 300) @ torch.ones(300, 300)"]
)
def test_torch_computes_with_them_whether_it_is_loaded_before_or_after(first: str) -> None:
    code = f"from kev.threads import use_cores; {first}; use_cores(1); import torch; print(torch.get_num_threads())"
    environment = {**os.environ, OMP: "2"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["1"]


def test_what_a_process_starts_inherits_its_number() -> None:
    code = "from kev.threads import use_cores; import os; use_cores(3); os.system('echo $OMP_NUM_THREADS')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3"]
