"""The grammar of benchmark jobs, its refusals, and the batch that holds every call."""

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kev.compute.jobs import Batch, Job, check_suites, parse_job, parse_jobs, read_timeout
from kev.errors import KevError, Refused, UsageError

WORD = st.text(alphabet="abcXYZ019_./-", min_size=1, max_size=12)
NAME = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,11}", fullmatch=True)


@given(WORD, st.none() | WORD, WORD, NAME, st.none() | st.text(alphabet="abc =-1.", max_size=12))
def test_every_job_that_can_be_made_is_read_back_the_same(
    repo: str, revision: str | None, suite: str, name: str, flags: str | None
) -> None:
    # A suite of a form that only flags have would be read as flags of a shorter job.
    assume(not (revision is None and suite.startswith("--") and flags is None))
    job = Job(
        repo if revision is None else f"{repo}@{revision}", suite, name, "" if flags is None else f"--{flags}".strip()
    )
    assert parse_job(str(job)) == job


@pytest.mark.parametrize(
    ("text", "job"),
    [
        ("/runs/s/00-trial-0/checkpoint@evals/v7/d@r9-a", Job("/runs/s/00-trial-0/checkpoint", "evals/v7/d", "r9-a")),
        ("org/model@0a1b2c@evals/v7/decision@r9-b", Job("org/model@0a1b2c", "evals/v7/decision", "r9-b")),
        ("org/model@0a1b2c@evals/x@r9-c@--rotations 2", Job("org/model@0a1b2c", "evals/x", "r9-c", "--rotations 2")),
        ("org/model@evals/x.jsonl@r9-d@--date_facts", Job("org/model", "evals/x.jsonl", "r9-d", "--date_facts")),
    ],
)  # fmt: skip
def test_a_job_is_read_from_the_right_so_that_a_pinned_run_survives(text: str, job: Job) -> None:
    assert parse_job(text) == job


@pytest.mark.parametrize(
    "text",
    ["", "run", "run@suite", "@suite@name", "run@@name", "run@suite@", "a@b@c@d@e", "a@b@c@d@--flag@x", "run@suite@--x",
     "run@suite@../up", "run@suite@a/b", "run@suite@.hidden"],
)  # fmt: skip
def test_what_is_no_job_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(UsageError, match="job "):
        parse_job(text)


@pytest.mark.parametrize(
    "fields",
    [("a,b", "s", "n", ""), ("a", "s@t", "n", ""), ("a", "s", "n,m", ""), ("a", "s", "n", "rotations"),
     ("a@b@c", "s", "n", ""), ("a", "s", "n", "--x,y"), ("", "s", "n", ""), ("a@", "s", "n", "")],
)  # fmt: skip
def test_a_job_that_could_not_be_read_back_cannot_be_made(fields: tuple[str, str, str, str]) -> None:
    with pytest.raises(UsageError):
        Job(*fields)


def test_two_jobs_of_one_name_are_refused_even_if_they_differ_in_case() -> None:
    assert [job.name for job in parse_jobs("a@s@one,a@s@two")] == ["one", "two"]
    with pytest.raises(UsageError, match="twice"):
        parse_jobs("a@s@one,b@s@One")


@pytest.mark.parametrize(
    ("suite", "seconds"),
    [("evals/v7/decision-v7", 1800), ("evals/longstate-v1", 7200), ("evals/documents-v2", 5400),
     ("evals/v9/transfer-v9", 3600), ("evals/longdoc-v1", 10800), ("evals/longstate-documents", 7200)],
)  # fmt: skip
def test_the_time_for_a_read_follows_the_first_word_of_its_suite(suite: str, seconds: int) -> None:
    assert read_timeout(suite) == seconds
    assert Job("r", suite, "n").timeout_s == seconds


def test_a_suite_that_is_not_here_is_refused_before_a_container_finds_out(tmp_path: Path) -> None:
    (tmp_path / "evals" / "here").mkdir(parents=True)
    (tmp_path / "evals" / "rows.jsonl").write_text("{}\n")
    check_suites(parse_jobs("a@evals/here@one,a@evals/rows.jsonl@two"), tmp_path)
    for suite in ("evals/gone", "evals/gone.jsonl", "evals/here.jsonl", "evals/rows", "../evals/here", "/evals/here"):
        with pytest.raises(Refused, match="job one"):
            check_suites([Job("a", suite, "one")], tmp_path)


def test_a_batch_keeps_the_call_of_every_job_and_refuses_a_second_start() -> None:
    jobs = tuple(parse_jobs("a@s@one,a@longdoc@two"))
    batch = Batch("arm", "H200", jobs)
    assert [batch.timeout_of(job) for job in jobs] == [1800, 10800]
    started = batch.with_call(jobs[0], "fc-1")
    assert (started.calls, list(started.unstarted)) == ({"one": "fc-1"}, [jobs[1]])
    assert started.with_call(jobs[0], "fc-1") == started
    with pytest.raises(KevError, match="twice"):
        started.with_call(jobs[0], "fc-2")
    with pytest.raises(KevError):
        started.with_call(Job("x", "y", "z"), "fc-3")
    assert list(started.with_call(jobs[1], "fc-2").unstarted) == []
