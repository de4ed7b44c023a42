"""`kevtui act`: what a key does, without a screen; the engine is a stand-in that counts its calls."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from action_lab import REPOSITORY, ActionLab, wait_until

from kev.clock import SystemClock
from kev.ledger.book import FILE_NAME as LEDGER_FILE
from kev.records.ledger import LedgerEvent
from kevtui import exit_codes
from kevtui.actions.control import Control
from kevtui.actions.proposal import Proposal
from kevtui.actions.requests import directory_of, in_words, read_recent

LAUNCH = ("launch", "r201", "--yes", "--name", "r201")
CONTROL_BYTES = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]")


def run_of(lab: ActionLab) -> int:
    """The process that carries out the only action there is."""
    (accepted,) = read_recent(lab.runs, 0)
    assert accepted.run is not None
    return accepted.run.process


def test_a_confirmed_launch_is_on_record_done_and_told_with_who_why_and_what_changed(lab: ActionLab) -> None:
    acted = lab.act(*LAUNCH, "--reason", "the night begins")
    assert (acted.code, acted.report["state"], acted.report["changed"]) == (0, "done", True)
    assert lab.called("launch") == 1
    (request,) = [json.loads(path.read_text()) for path in directory_of(lab.runs).glob("launch-*-1.json")]
    assert request["reason"] == "the night begins"
    assert request["id"] == acted.report["id"]
    assert [event["kind"] for event in lab.events] == ["action", "action"]
    for event in lab.events:
        assert event["who"] and event["subject"] == "r201"
        assert "0 of 2 trials started -> 2 of 2 trials started" in event["text"]
        assert "the night begins" in event["text"]


def test_an_accepted_action_is_shown_and_never_repeated(lab: ActionLab) -> None:
    first = lab.act(*LAUNCH)
    again = lab.act(*LAUNCH)
    assert (again.code, again.report["changed"], again.report["repeated"]) == (0, False, True)
    assert again.report["id"] == first.report["id"]
    assert lab.called("launch") == 1


def test_of_many_at_once_one_is_done(lab: ActionLab) -> None:
    (lab.root / "hang").touch()
    running = [lab.act(*LAUNCH, "--no-wait", wait=False) for _ in range(4)]
    reports = [acted.end().report for acted in running]
    assert len({report["id"] for report in reports}) == 1
    assert sorted(report["changed"] for report in reports) == [False, False, False, True]
    (lab.root / "hang").unlink()
    wait_until(lambda: read_recent(lab.runs, 0)[0].ok, "the one launch to end")
    assert lab.called("launch") == 1


def test_what_spends_needs_yes_and_above_the_threshold_the_name(lab: ActionLab) -> None:
    for arguments in (("launch", "r201"), ("launch", "r201", "--yes"), ("launch", "r201", "--yes", "--name", "r20")):
        asked = lab.ask(*arguments)
        assert (asked.code, asked.report["state"]) == (exit_codes.UNCONFIRMED, "unconfirmed")
        assert asked.report["type_to_confirm"] == "r201"
    assert lab.calls == [] and lab.events == []


def test_a_destructive_verb_needs_its_target_even_where_there_is_only_one(lab: ActionLab) -> None:
    for arguments in (("launch", "--yes"), ("cancel", "--yes"), ("confirm", "r201", "--yes"), ("close", "--yes")):
        assert lab.ask(*arguments).code == exit_codes.USAGE
    assert lab.ask("launch", "--dry-run").report["target"] == "r201"
    assert lab.calls == []


def test_past_the_authorization_it_is_refused_whatever_is_said(lab_with: Callable[[str], ActionLab]) -> None:
    lab = lab_with("79")  # 71.1 after the reserve, of which 10 are spent: 61.1, and 61.38 are needed
    asked = lab.ask(*LAUNCH)
    assert asked.code == exit_codes.REFUSED
    assert "the authorization covers it: no" in asked.report["text"]
    assert lab.calls == []


@pytest.mark.parametrize(("age_s", "readings"), [(3600, 1), (-600, 1), (1, 0)])
def test_without_a_fresh_reading_nothing_is_started(lab: ActionLab, age_s: float, readings: int) -> None:
    path = lab.open_session(age_s=age_s)
    if not readings:
        state = json.loads(path.read_text())
        state["readings"] = []
        path.write_text(json.dumps(state))
    asked = lab.ask(*LAUNCH)
    assert asked.code == exit_codes.REFUSED
    unmet = [check["text"] for check in asked.report["checks"] if check["met"] is False]
    assert "the billing reading is fresh" in unmet
    assert lab.calls == []


@pytest.mark.parametrize("gpu", ["B300", "H20O", "h100", "H100:0", "H100:-2", "H100:1.5", "H100:", "", "any"])
def test_a_card_without_a_price_is_refused_with_study_value_and_the_known_ones(lab: ActionLab, gpu: str) -> None:
    path = lab.root / "experiments" / "rounds" / "r201.json"
    spec = json.loads(path.read_text())
    spec["studies"]["r201-delta"]["gpu"] = gpu
    path.write_text(json.dumps(spec))
    proposal = lab.propose("launch", "r201")
    (check,) = [check for check in proposal.unmet if check.text == "every study has a bound"]
    assert all(word in check.detail for word in ("r201-delta", repr(gpu)[:40], "B200, H100, H200, T4"))
    assert not proposal.ready
    unknown_is_no_zero(proposal)
    if gpu == "B300":
        assert lab.ask(*LAUNCH).code == exit_codes.REFUSED
    assert lab.calls == []


def unknown_is_no_zero(proposal: Proposal) -> None:
    """What nobody can price has no bound in the preview, leaves nobody knows what, and is covered by nothing."""
    facts = dict(proposal.facts)
    assert facts["bound"] == "not known" and facts["headroom"].endswith(", not known after it")
    assert proposal.bound is None and proposal.typed
    assert "the authorization covers it" in {check.text for check in proposal.unmet}
    assert "$0.00 at most" not in str(proposal.to_json())


@pytest.mark.parametrize("verb", ["launch", "reads"])
def test_a_ledger_that_cannot_be_read_is_never_taken_for_all_started_or_for_no_cost(lab: ActionLab, verb: str) -> None:
    lab.start(next(iter(lab.orders())))
    path = lab.runs / LEDGER_FILE
    path.write_bytes(path.read_bytes().replace(b'"unit"', b'"un', 1))
    proposal = lab.propose(verb, "r201")
    assert not proposal.already and not proposal.ready
    assert proposal.bound is None and "$0.00 at most" not in str(proposal.to_json())
    assert lab.ask(verb, "r201", "--yes", "--name", "r201").code == exit_codes.REFUSED


def test_a_failure_is_told_with_its_cause_and_may_be_tried_again(lab: ActionLab) -> None:
    (lab.root / "trouble").write_text("the volume is away")
    acted = lab.act(*LAUNCH)
    assert (acted.code, acted.report["state"], acted.report["changed"]) == (exit_codes.FAILED, "failed", False)
    assert acted.report["text"] == "the volume is away"
    assert lab.events[-1]["severity"] == "warning" and "the volume is away" in lab.events[-1]["text"]
    (lab.root / "trouble").unlink()
    assert lab.act(*LAUNCH).code == 0
    assert lab.called("launch") == 2


def test_what_a_command_answers_is_told_in_figures() -> None:
    answer = {"trial/r9/trial-0": {"fetched": 12, "kept": 0, "withheld": []}, "started": {}, "note": None, "ok": True}
    assert in_words(answer) == "trial/r9/trial-0: fetched 12, kept 0, withheld 0, started none, ok True"


def test_it_goes_on_when_whoever_asked_is_killed(lab: ActionLab) -> None:
    (lab.root / "hang").touch()
    acted = lab.act(*LAUNCH, wait=False)
    wait_until(lambda: lab.called("launch") == 1, "the launch to begin")
    acted.process.kill()
    acted.process.communicate()
    assert lab.act(*LAUNCH, "--no-wait").report["state"] == "pending"
    (lab.root / "hang").unlink()
    assert lab.act(*LAUNCH).report["state"] == "done"
    assert lab.called("launch") == 1


def test_a_runner_that_is_killed_leaves_its_command_in_charge(lab: ActionLab) -> None:
    (lab.root / "hang").touch()
    lab.act(*LAUNCH, "--no-wait")
    wait_until(lambda: lab.called("launch") == 1, "the launch to begin")
    os.kill(run_of(lab), signal.SIGKILL)
    wait_until(lambda: not read_recent(lab.runs, 0)[0].alive(0), "the runner to be gone")
    again = lab.act(*LAUNCH, "--no-wait")
    # The command still holds the lock: nothing else is started beside it.
    assert again.report["repeated"] and not again.report["changed"]
    (lab.root / "hang").unlink()
    wait_until(lambda: lab.act(*LAUNCH).report["state"] == "done", "another one, once the first is over")
    assert lab.called("launch") == 2


def test_something_else_than_was_shown_is_not_done(lab: ActionLab) -> None:
    shown = lab.act("launch", "r201", "--dry-run").report["id"]
    assert lab.ask(*LAUNCH, "--expect", "launch-r201-0000000000").code == exit_codes.REFUSED
    lab.start("trial/r201-full/trial-0")
    assert lab.ask(*LAUNCH, "--expect", shown).code == exit_codes.REFUSED
    assert lab.calls == []


def test_while_a_dashboard_has_control_others_say_so_first(lab: ActionLab) -> None:
    control = Control(lab.runs, "night", SystemClock())
    assert control.take() is None
    acted = lab.act(*LAUNCH)
    assert acted.code == exit_codes.REFUSED
    assert f"process {os.getpid()}" in acted.report["text"]
    assert lab.act("validate", "r201").code == 0
    assert lab.act(*LAUNCH, "--beside").code == 0
    control.give()


@pytest.mark.parametrize("how", ["--read-only", "KEVTUI_READONLY", "setting"])
def test_read_only_refuses_and_creates_nothing(lab: ActionLab, how: str) -> None:
    before = sorted(lab.runs.rglob("*"))
    env = {"KEVTUI_READONLY": "1"} if how == "KEVTUI_READONLY" else {}
    if how == "setting":
        (lab.root / "config" / "kevtui").mkdir(parents=True)
        (lab.root / "config" / "kevtui" / "config.toml").write_text("read_only = true\n")
    options = ["--read-only"] if how == "--read-only" else []
    for arguments in (LAUNCH, ("pull", "r201-full"), ("validate", "r201"), ("pause",)):
        asked = lab.ask(*arguments, *options, env=env)
        assert asked.code == exit_codes.REFUSED, asked.report
    assert lab.act(*LAUNCH, "--dry-run", *options, env=env).code == 0
    assert sorted(lab.runs.rglob("*")) == before
    assert lab.calls == []


HOSTILE = "[/bold] [@click=app.quit]x[/] [red]no\x1b[2J\x1b]0;t\x07\x9b31m\rover\u2028\\"


def raw(
    lab: ActionLab, *arguments: str, env: dict[str, str] | None = None, stdout: int = subprocess.PIPE
) -> tuple[int, bytes, bytes]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)} | (env or {})
    command = [sys.executable, "-m", "kevtui", "act", *arguments, "--root", str(lab.root)]
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, env=environment, check=False, cwd=REPOSITORY)
    return done.returncode, done.stdout or b"", done.stderr


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_texts_of_the_engine_and_of_files_reach_no_terminal_raw(lab: ActionLab, form: tuple[str, ...]) -> None:
    (lab.root / "trouble").write_bytes(HOSTILE.encode())
    code, out, err = raw(lab, *LAUNCH, "--reason", HOSTILE, *form)
    assert code == exit_codes.FAILED
    assert not CONTROL_BYTES.search(out + err) and b"\xc2\x9b" not in out and "\u2028".encode() not in out
    assert b"[@click=app.quit]x[/]" in out
    code, out, err = raw(lab, "resume", HOSTILE.replace("/", ""), "--dry-run", *form)
    assert code == exit_codes.NOTHING
    assert not CONTROL_BYTES.search(out + err)


def test_a_narrow_encoding_gets_stand_ins_and_an_output_that_takes_nothing_is_told(lab: ActionLab) -> None:
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TERM": "dumb"}
    code, out, _ = raw(lab, "launch", "r201", "--dry-run", env=env)
    assert code == 0 and out.isascii() and b"1 x H200" in out and b"\x1b" not in out
    with Path("/dev/full").open("w") as full:
        code, _, err = raw(lab, "launch", "r201", "--dry-run", stdout=full.fileno())
    assert code == exit_codes.OUTPUT_LOST and err.count(b"\n") == 1
    reading, writing = os.pipe()
    os.close(reading)
    code, _, err = raw(lab, "launch", "r201", "--dry-run", stdout=writing)
    os.close(writing)
    assert (code, err) == (0, b"")


def test_what_has_ended_and_may_not_be_metered_yet_is_named_in_what_is_committed(lab: ActionLab) -> None:
    lab.start("trial/r201-full/trial-0")
    assert "not metered" not in dict(lab.propose("reads", "r201").facts)["committed"]
    now = time.time()
    lab.put_in_ledger(
        LedgerEvent(
            event="ended", at=now, unit="trial/r201-full/trial-0", nonce="trial/r201-full/trial-0", outcome="timed_out"
        )
    )
    words = dict(lab.propose("reads", "r201").facts)["committed"]
    assert re.fullmatch(r"\$[0-9.]+, of which \$[0-9.]+ ended, perhaps not metered yet", words)
