"""Why a round failed is read from logs that quote, draw bars and look alike."""

import io
import tracemalloc

from kev.autorl.journal.failures import Failure, Signs, classify, log_lines, read_signs, records_in
from kev.records.autorl import ScoreEntry

GOOD = "{'loss': 0.0, 'grad_norm': 0.8, 'reward': 0.4, 'reward_std': 0.2, 'frac_reward_zero_std': 0.2}"
EQUAL = "{'loss': '0.0', 'grad_norm': '0.0', 'reward': '1', 'reward_std': '0.0', 'frac_reward_zero_std': '1.0'}"
SICK = "{'loss': 0.31, 'grad_norm': nan, 'frac_non_finite_loss': 0.5}"
TRACE = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    import x\nImportError: x'


def signs(*lines: str) -> Signs:
    return read_signs(log_lines(io.BytesIO("\n".join(lines).encode())), "agent.log")


def failure(*lines: str, exit_code: int | None = 1) -> Failure | None:
    return classify(signs(*lines), exit_code=exit_code, submissions=[])


def test_a_traceback_that_ends_a_run_is_an_error_with_its_last_line() -> None:
    found = failure(GOOD, TRACE)
    assert found is not None and found.type == "code_error_runtime"
    assert str(found.evidence) == "agent.log:5: ImportError: x"
    assert failure("[rank0]: " + TRACE.replace("\n", "\n[rank0]: ")) is not None


def test_a_traceback_that_is_quoted_or_survived_is_none() -> None:
    assert failure(GOOD, "completion: 'Traceback (most recent call last): ... out of memory'", exit_code=0) is None
    assert failure(TRACE, GOOD, exit_code=None) is None
    assert failure(TRACE, exit_code=0) is None


def test_a_loss_that_starts_at_zero_is_healthy_and_equal_groups_are_not() -> None:
    assert failure(GOOD, GOOD, GOOD, exit_code=0) is None
    found = failure(EQUAL, EQUAL, EQUAL, exit_code=0)
    assert found is not None and (found.type, found.evidence.line) == ("rollout_logic_wrong", 1)
    assert failure(EQUAL, EQUAL, GOOD, exit_code=0) is None


def test_a_gradient_that_is_no_number_is_found_behind_a_healthy_loss() -> None:
    found = failure(GOOD, GOOD, SICK, SICK, exit_code=0)
    assert found is not None and (found.type, found.evidence.line) == ("training_diverged", 3)
    assert failure(GOOD, SICK, GOOD, exit_code=0) is None, "a step that was skipped and overcome"


def test_records_behind_a_bar_and_behind_each_other_are_read() -> None:
    line = "100%|####| 9/9 [00:40<00:00,  4.69s/it]{'loss': 0.41}{'loss': 0.4, 'x': 1e-06}"
    assert records_in(line) == [{"loss": 0.41}, {"loss": 0.4, "x": 1e-06}]
    assert records_in("said {'loss': nan}") == []


def test_a_bar_without_newlines_costs_no_memory() -> None:
    stream = io.BytesIO(b"\r 10% [##   ] loss=0.4" * 400_000 + b"x" * 8_000_000 + b"\n" + GOOD.encode())
    tracemalloc.start()
    found = read_signs(log_lines(stream), "agent.log")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.records == 1 and peak < 40_000_000


def test_copies_timeouts_and_failed_gradings_have_their_own_types() -> None:
    copy = ScoreEntry(submission_id=1, score=40.0, improvement=0.0, label="no change")
    failed = ScoreEntry(submission_id=2, error="no weights")
    for entries, log, kind in (
        ([copy], [], "copy_model_fallback"),
        ([failed], [], "code_error_runtime"),
        ([], [(7, "time limit reached")], "timeout_no_submission"),
    ):
        found = classify(Signs(), exit_code=None, submissions=entries, run_log=log)
        assert found is not None and found.type == kind
    found = classify(Signs(), exit_code=3, submissions=[copy, ScoreEntry(submission_id=3, score=50.0)])
    assert found is not None and (found.type, found.rule) == ("unknown", "exit_code")
    odd = ScoreEntry(submission_id=4, not_finite=True)
    found = classify(Signs(), exit_code=0, submissions=[odd])
    assert found is not None and (found.type, found.rule) == ("unknown", "not_scored")
    assert classify(Signs(), exit_code=0, submissions=[odd, ScoreEntry(submission_id=5, score=1.0)]) is None
