"""Why a round failed is read from logs that quote, draw bars and look alike."""

import io
import time
import tracemalloc

import pytest

from kev.autorl.journal.failures import BLOCK, Failure, Signs, classify, log_lines, read_signs, records_in
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


@pytest.mark.parametrize(
    "before",
    [
        "\ufeff", "\x1b[0m", "\x1b[A\x1b[A", "\x1b[36m(Trainer pid=71, ip=10.0.0.2)\x1b[0m ", "[default1]:", "2: ",
        "INFO:trainer.loop:", "[INFO|trainer.py:3503] 2031-03-04 05:06:07,123 >> ", "2031-03-04T05:06:07Z ",
        "2031-03-04 05:06:07,123 - INFO - ", " 5%|5 | 5/99 [00:10<03:20,  2.11s/it, loss=0.4, lr=1e-6]",
    ],
)  # fmt: skip
def test_what_terminals_launchers_and_loggers_put_before_a_record_or_a_traceback_hides_neither(before: str) -> None:
    found = failure(before + GOOD, before + SICK, exit_code=0)
    assert found is not None and (found.type, found.evidence.line) == ("training_diverged", 2)
    found = failure(GOOD, before + TRACE)
    assert found is not None and str(found.evidence) == "agent.log:5: ImportError: x"
    assert signs(f"the log says {before}{SICK}").records == (before.endswith("]")), "a quotation begins with words"


def test_figures_are_read_as_numpy_and_torch_write_them_and_only_a_records_own() -> None:
    line = "{'loss': np.float64(0.25), 'grad_norm': tensor(nan, device='cuda:0'), 'by': {'loss': 7.0}, 'x': [1]}"
    (record,) = records_in(line)
    assert record["loss"] == 0.25 and record["grad_norm"] != record["grad_norm"]


def test_the_mean_loss_of_a_whole_run_hides_no_gradient_that_was_no_number() -> None:
    found = failure(GOOD, SICK, SICK, "{'train_runtime': 31.5, 'train_loss': 0.28, 'epoch': 1.0}", exit_code=0)
    assert found is not None and (found.type, found.evidence.line) == ("training_diverged", 2)
    found = failure(GOOD, "{'train_runtime': 31.5, 'train_loss': nan}", exit_code=0)
    assert found is not None and found.type == "training_diverged"


def test_equal_groups_are_found_behind_the_gradient_of_a_kl_term_and_not_behind_another() -> None:
    pulled = "{'loss': 4e-04, 'grad_norm': 0.003, 'kl': 0.01, 'reward_std': 0.0, 'frac_reward_zero_std': 1.0}"
    found = failure(*[pulled] * 3, exit_code=0)
    assert found is not None and found.type == "rollout_logic_wrong"
    assert failure(*[pulled.replace("'kl': 0.01, ", "")] * 3, exit_code=0) is None


@pytest.mark.parametrize(
    "error",
    [
        "queue.Empty", "StopIteration", "subprocess.TimeoutExpired: Command 'x' timed out", "zlib.error: Error -3",
        "ray.exceptions.RayTaskError(ValueError): bad", "__main__.main.<locals>.Boom: x",
    ],
)  # fmt: skip
def test_the_last_line_of_a_traceback_is_its_error_whatever_its_class_is_called(error: str) -> None:
    found = failure(GOOD, TRACE.replace("ImportError: x", error))
    assert found is not None and str(found.evidence) == f"agent.log:5: {error}"


def test_a_syntax_error_and_a_group_of_errors_are_errors_too() -> None:
    found = failure("  File \"train.py\", line 3\n    x(\n     ^\nSyntaxError: '(' was never closed")
    assert found is not None and str(found.evidence) == "agent.log:4: SyntaxError: '(' was never closed"
    group = [f"  | {line}" for line in TRACE.split("\n")]
    found = failure(GOOD, *["  + Exception Group Traceback (most recent call last):", *group[1:]])
    assert found is not None and str(found.evidence) == "agent.log:5: ImportError: x"


def test_what_a_launcher_says_of_a_process_that_failed_is_not_why_it_failed() -> None:
    launcher = TRACE.replace("ImportError: x", "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:")
    found = failure(GOOD, TRACE, launcher)
    assert found is not None and str(found.evidence) == "agent.log:5: ImportError: x"
    found = failure(GOOD, launcher)
    assert found is not None and found.type == "code_error_runtime"


def test_a_bar_without_newlines_costs_no_memory() -> None:
    stream = io.BytesIO(b"\r 10% [##   ] loss=0.4" * 400_000 + b"x" * 8_000_000 + b"\n" + GOOD.encode())
    tracemalloc.start()
    found = read_signs(log_lines(stream), "agent.log")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.records == 1 and peak < 40_000_000


@pytest.mark.parametrize(
    "bar", ["\r  12/40 [###   ] 2.1s/it, loss=0.41      ", "\rtrain: 30%|###    | 12/40 loss=0.41  "]
)
def test_a_record_behind_bars_that_were_drawn_over_each_other_is_found(bar: str) -> None:
    found = signs(bar * 30_000 + GOOD, bar + SICK, "said" + bar)
    assert found.records == 2 and found.not_finite is not None and found.not_finite.line == 2


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r\r\n"])
def test_no_line_is_taken_for_an_overwritten_one_whatever_it_ends_with(end: str) -> None:
    lines = ["x" * (BLOCK - 2 - len(end)), *TRACE.split("\n"), ""]
    found = list(log_lines(io.BytesIO(end.join(lines).encode())))
    assert [text for _, text in found][1:] == TRACE.split("\n") and found[-1][0] == 5


@pytest.mark.parametrize("piece", ["[12:34 ", "{'a': {", "12: ", "(a pid=1", "\x1b]", "  | "])
def test_a_line_that_almost_begins_a_thousand_times_costs_no_time(piece: str) -> None:
    data = (piece * (16_000 // len(piece)) + "\n").encode() * 40
    began = time.process_time()
    assert read_signs(log_lines(io.BytesIO(data)), "agent.log").records == 0
    assert time.process_time() - began < 2.0


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
