"""Every way in which an operation on the provider fails, and the tests that make it fail so on the emulator.

The tests are named here and held elsewhere; one that is renamed or removed is missed here.
"""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]

FAULTS = "kev/emulator/test_faults.py"
CONTAINERS = "kev/emulator/test_containers.py"
EMULATED_CALLS = "kev/emulator/test_calls.py"
EMULATED_LOGS = "kev/emulator/test_logs.py"
EMULATED_VOLUMES = "kev/emulator/test_volumes.py"
MONEY = "kev/emulator/test_money.py"
CALLS = "kev/compute/test_calls.py"
EXCEPTIONS = "kev/compute/test_exceptions.py"
VOLUMES = "kev/compute/test_volumes.py"
LISTER = "kev/compute/test_lister.py"
LOGS = "kev/compute/test_logs.py"
LEASES = "kev/compute/test_leases.py"
NIGHT = "e2e/test_modal_app.py"

TABLE: dict[str, dict[str, tuple[str, str]]] = {
    "health": {
        "nobody answers": (EXCEPTIONS, "test_a_server_that_was_never_there_is_unavailable_at_our_deadline"),
        "it dies": (EXCEPTIONS, "test_a_server_that_died_is_unavailable"),
        "token refused": (EXCEPTIONS, "test_a_token_that_is_not_known_is_auth_failed"),
        "no token": (EXCEPTIONS, "test_without_a_token_one_line_says_what_to_do"),
    },
    "app lookup": {
        "not there, or made by looking": (
            EXCEPTIONS, "test_an_app_that_is_not_there_is_none_and_is_not_created_by_looking"
        ),
    },
    "deploy": {
        "user code fails, and takes long": (CALLS, "test_a_deployment_is_told_line_by_line_and_ends_in_one_event"),
        "nobody waits for it": (CALLS, "test_a_deployment_that_nobody_waits_for_any_more_is_ended"),
        "old containers stay": (EMULATED_CALLS, "test_a_new_deployment_replaces_the_containers_of_the_old_one"),
        "other sources than here": (NIGHT, "test_an_app_that_was_deployed_from_other_sources_is_refused"),
    },
    "spawn": {
        "one lost answer": (CALLS, "test_one_lost_answer_is_repaired_by_the_client_and_starts_one_call"),
        "all answers lost": (NIGHT, "test_a_call_whose_answer_was_lost_is_adopted_and_not_started_twice"),
        "throttled": (EXCEPTIONS, "test_too_often_is_throttled_with_the_wait_that_was_asked_for"),
        "no more money": (EXCEPTIONS, "test_a_rate_limit_never_ends_in_a_phase_and_a_spend_limit_stops_spawns_only"),
        "app stopped": (EXCEPTIONS, "test_a_function_that_is_not_there_is_not_deployed_and_surely_not_started"),
        "the launcher dies": (
            NIGHT, "test_a_launcher_killed_in_the_middle_leaves_a_record_that_is_completed_and_loses_no_call"
        ),
    },
    "poll": {
        "a remote TimeoutError": (
            EXCEPTIONS, "test_a_timeout_error_of_remote_code_is_a_failure_and_not_pending_for_ever"
        ),
        "result expired": (EXCEPTIONS, "test_a_result_that_is_no_longer_kept_is_expired"),
        "it hangs": (EXCEPTIONS, "test_a_server_that_hangs_is_unavailable_at_our_deadline_and_not_active"),
    },
    "batch reconcile": {
        "calls nobody knows": (
            CALLS, "test_when_every_answer_is_lost_the_error_says_that_the_call_may_exist_and_the_list_shows_it"
        ),
        "keys of older command lines": (CALLS, "test_rows_of_older_command_lines_and_strange_ones_are_read_too"),
    },
    "why failed": {
        "cancelled or failed": (EXCEPTIONS, "test_a_call_that_was_cancelled_is_told_from_one_that_failed"),
        "it never started": (EXCEPTIONS, "test_a_container_that_cannot_start_is_a_failure_with_its_cause"),
        "it died": (EXCEPTIONS, "test_a_container_that_dies_too_often_is_a_failure_or_lost"),
    },
    "cancel": {
        "swallowed": (CALLS, "test_settling_ends_what_swallows_every_exception"),
        "stuck below Python": (EMULATED_CALLS, "test_a_hard_cancel_ends_a_program_that_swallows_the_soft_one"),
        "throttled meanwhile": (CALLS, "test_settling_rides_out_a_throttle"),
        "not there": (EXCEPTIONS, "test_cancelling_a_call_that_is_not_there_is_no_error"),
    },
    "resume": {
        "two writers": (LEASES, "test_of_two_attempts_that_race_on_the_emulator_exactly_one_wins_each_time"),
        "the old one still runs": (
            NIGHT, "test_nobody_disturbs_a_trial_that_is_held_and_a_cancelled_one_is_not_continued"
        ),
    },
    "list files": {
        "rate limited": (LISTER, "test_after_a_throttle_nobody_asks_until_the_wait_is_over"),
        "streams are not tried again": (FAULTS, "test_streams_are_not_tried_again_after_an_outage"),
        "commit lag": (EMULATED_VOLUMES, "test_a_stale_volume_shows_a_commit_only_after_the_delay"),
    },
    "read and tail": {
        "stale until committed": (VOLUMES, "test_what_is_not_committed_is_not_seen"),
        "large": (VOLUMES, "test_reading_is_bounded"),
        "not there": (EXCEPTIONS, "test_what_is_not_on_a_volume_is_empty_or_none_whatever_the_client_raises"),
    },
    "pull": {
        "overwritten meanwhile": (VOLUMES, "test_a_file_that_grew_since_it_was_listed_is_listed_again"),
        "cut off": (VOLUMES, "test_a_pull_that_broke_off_keeps_what_was_complete_and_goes_on_from_there"),
        "disk full": (VOLUMES, "test_a_full_disk_is_told_from_a_broken_connection"),
        "damaged": (
            VOLUMES, "test_what_agrees_with_its_manifest_is_verified_and_what_does_not_is_not_put_in_place"
        ),
    },
    "logs live": {
        "one request for each follower": (EMULATED_LOGS, "test_many_followers_cost_one_request_each"),
        "whose line it is": (LOGS, "test_the_stream_of_the_app_tells_its_calls_apart_and_the_tail_shows_one"),
        "slow": (FAULTS, "test_a_slow_log_stream_delays_each_line"),
    },
    "logs history": {
        "retention": (EMULATED_LOGS, "test_a_log_forgets_what_is_older_than_its_retention"),
        "lag": (EMULATED_LOGS, "test_a_lagging_log_shows_lines_only_when_they_are_old_enough"),
    },
    "containers": {
        "pending, without a start": (CONTAINERS, "test_above_the_quota_of_cards_containers_wait_and_show_as_pending"),
        "keys of older command lines": (CALLS, "test_rows_of_older_command_lines_and_strange_ones_are_read_too"),
    },
    "container stop": {
        "its call goes on elsewhere": (FAULTS, "test_a_stopped_container_gives_its_call_to_another_one"),
    },
    "billing": {
        "by app and full hour": (MONEY, "test_the_report_has_a_row_per_app_and_hour_marked_as_simulated"),
        "the spend cap, mid-training": (MONEY, "test_a_cap_that_stops_ends_containers_and_keeps_their_calls_waiting"),
        "exact": (CALLS, "test_money_of_an_emulator_is_exact_and_marked_as_simulated"),
    },
    "rates": {
        "asked for seldom": (CALLS, "test_prices_are_asked_for_once_a_day"),
    },
}  # fmt: skip


@pytest.mark.parametrize("operation", TABLE)
def test_every_failure_of_an_operation_is_made_to_happen_by_a_test(operation: str) -> None:
    missing = [f"{failure}: {file}::{name}" for failure, (file, name) in TABLE[operation].items()
               if name not in names_of(TESTS / file)]  # fmt: skip
    assert not missing


def names_of(path: Path) -> set[str]:
    """The names of a file's tests."""
    found = ast.walk(ast.parse(path.read_text()))
    return {node.name for node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
