"""The sorting of exceptions, without a server: order along the ancestry, hints, words, and safe messages."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from modal import exception

from kev.compute.classify import ERRORS, PHASES, error_of, exhausted, message_of, phase_of, retry_hint
from kev.compute.client import complaint_of
from kev.compute.errors import AuthFailed, NotDeployed, SpendLimitReached, Throttled, Unavailable
from kev.compute.protocol import Phase
from kev.errors import KevError


def test_every_class_that_is_named_exists_in_the_installed_client() -> None:
    assert [name for name in (*PHASES, *ERRORS, "ResourceExhaustedError") if not hasattr(exception, name)] == []


@pytest.mark.parametrize(
    ("error", "phase"),
    [
        (TimeoutError(), Phase.ACTIVE),
        (exception.FunctionTimeoutError("t"), Phase.TIMED_OUT),
        (exception.OutputExpiredError(), Phase.EXPIRED),
        (exception.InternalFailure("w"), Phase.LOST),
        (exception.NotFoundError("n"), Phase.MISSING),
        (exception.RemoteError("r"), Phase.FAILED),
        (exception.ExecutionError("e"), Phase.FAILED),
        (exception.DeserializationError("d"), Phase.FAILED),
        (exception.TimeoutError("some other wait"), None),
        (exception.ConnectionError("c"), None),
        (exception.ServiceError("s"), None),
        (exception.InternalError("i"), None),
        (exception.AuthError("a"), None),
        (exception.ResourceExhaustedError("r"), None),
        (exception.ClientClosed("c"), None),
    ],
)
def test_only_what_speaks_of_the_call_is_a_phase(error: Exception, phase: Phase | None) -> None:
    assert phase_of(error) is phase


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (exception.AuthError("a"), AuthFailed),
        (exception.PermissionDeniedError("p"), AuthFailed),
        (exception.NotFoundError("n"), NotDeployed),
        (exception.ConflictError("App is stopped"), NotDeployed),
        (exception.ConnectionError("c"), Unavailable),
        (exception.ServiceError("s"), Unavailable),
        (exception.TimeoutError("t"), Unavailable),
        (exception.Error("new in some version"), Unavailable),
        (ConnectionResetError("reset"), Unavailable),
        (RuntimeError("defect"), Unavailable),
    ],
)
def test_whatever_else_is_one_of_the_failures_to_ask(error: Exception, kind: type) -> None:
    found = error_of(error, "ask")
    assert type(found) is kind
    assert isinstance(found, KevError)
    assert str(found).startswith("ask: ")


def hinted(message: str, *details: object) -> exception.ResourceExhaustedError:
    error = exception.ResourceExhaustedError(message)
    error._grpc_details = list(details)
    return error


@pytest.mark.parametrize(
    ("message", "hint", "kind"),
    [
        ("too many requests", 5.0, Throttled),
        ("too many requests", None, Throttled),
        ("Workspace has reached its spend limit", None, SpendLimitReached),
        ("Billing: no payment method", None, SpendLimitReached),
        ("you are out of credits", None, SpendLimitReached),
        ("Workspace has reached its spend limit", 3.0, Throttled),
        ("rate limit of billing reports", None, Throttled),
        ("", None, Throttled),
    ],
)
def test_the_hint_decides_first_and_the_words_after_it(message: str, hint: float | None, kind: type) -> None:
    details = [] if hint is None else [SimpleNamespace(retry_after_secs=hint)]
    found = error_of(hinted(message, SimpleNamespace(other=1), *details), "spawn")
    assert type(found) is kind
    assert not isinstance(found, Throttled) or found.retry_after_s == hint


@pytest.mark.parametrize("details", [None, 5, "text", [None], *([SimpleNamespace(retry_after_secs=each)]
                                     for each in (True, -1, "5", None))])  # fmt: skip
def test_details_of_a_strange_form_are_no_hint(details: object) -> None:
    error = exception.ResourceExhaustedError("x")
    error._grpc_details = details
    assert retry_hint(error) is None


@given(st.text(max_size=2000))
def test_whatever_a_server_says_becomes_one_bounded_line_without_control_characters(text: str) -> None:
    found = message_of(exception.RemoteError(text))
    assert 0 < len(found) <= 300
    assert found.isprintable() or all(each.isprintable() or ord(each) > 0x9F for each in found)
    assert "\n" not in str(exhausted(text, None, "poll"))


@pytest.mark.parametrize("doing", ["list kev-runs:/r41-budget", "read kev-runs:/credits/a", "modal billing report"])
def test_what_was_asked_for_does_not_speak_of_money(doing: str) -> None:
    for error in (error_of(exception.ResourceExhaustedError("try again"), doing), complaint_of(b"exhausted", doing)):
        assert type(error) is Throttled and str(error).startswith(f"{doing}: ")
    about_money = error_of(exception.ResourceExhaustedError("workspace has no credits left"), "list kev-runs:/throttle")
    assert type(about_money) is SpendLimitReached


def test_an_error_without_words_is_named_by_its_class() -> None:
    assert message_of(exception.RemoteError("")) == "RemoteError"


@pytest.mark.parametrize(
    ("complaint", "kind"),
    [
        (
            b"\xe2\x95\xad\xe2\x94\x80 Error \xe2\x94\x80\xe2\x95\xae\n\xe2\x94\x82 Token missing. \xe2\x94\x82",
            AuthFailed,
        ),
        (b"Error: Function 'x' not found in app 'y'.", NotDeployed),
        (b"Error: Rate limit exceeded", Throttled),
        (b"Error: workspace spend limit reached", SpendLimitReached),
        (b"Traceback ... \xff\x1b[31m", Unavailable),
        (b"", Unavailable),
    ],
)
def test_the_last_words_of_the_command_line_are_sorted_too(complaint: bytes, kind: type) -> None:
    found = complaint_of(complaint, "modal container list")
    assert type(found) is kind
    assert "\x1b" not in str(found)
