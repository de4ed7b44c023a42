"""What an exception of the `modal` client means: a phase of the call, or a failure to ask.

Pure: classes are told by name and module along their ancestry, so that this needs no `modal`, and so that a class
which a version lacks costs nothing. The most specific known class decides: an expired result is also a kind of
modal's own TimeoutError.

With `MODAL_PAYLOAD_FORMAT=cbor` a builtin TimeoutError means "not finished yet" and nothing else; with pickled
results it may as well be what the remote code raised, which is why `kev.compute.client` forces cbor.
"""

from collections.abc import Callable
from typing import Any

from kev.compute.errors import AuthFailed, NotDeployed, RemoteError, SpendLimitReached, Throttled, Unavailable
from kev.compute.protocol import Phase
from kev.text import shorten, visible

MAX_MESSAGE = 300
"""Characters of a remote message that are kept."""

SPEND_WORDS = ("spend limit", "spending limit", "spend cap", "budget", "billing", "payment", "out of credit", "credits")
RATE_WORDS = ("rate limit", "too many", "throttl", "slow down", "requests per")

PHASES = {
    "FunctionTimeoutError": Phase.TIMED_OUT,
    "OutputExpiredError": Phase.EXPIRED,
    "InternalFailure": Phase.LOST,
    "NotFoundError": Phase.MISSING,
    "RemoteError": Phase.FAILED,
    "ExecutionError": Phase.FAILED,
    "DeserializationError": Phase.FAILED,
}
"""Classes of `modal.exception` that tell how the call itself ended."""

ERRORS: dict[str, Callable[[str], RemoteError]] = {
    "AuthError": AuthFailed,
    "PermissionDeniedError": AuthFailed,
    "NotFoundError": NotDeployed,
    "ConflictError": NotDeployed,
    "ConnectionError": Unavailable,
    "ServiceError": Unavailable,
    "InternalError": Unavailable,
    "ClientClosed": Unavailable,
    "TimeoutError": Unavailable,
    "DataLossError": Unavailable,
    "Error": Unavailable,
}
"""Classes of `modal.exception` that tell why nothing could be asked. ConflictError is a call to a stopped app."""


def phase_of(error: BaseException) -> Phase | None:
    """What `error`, raised by `FunctionCall.get`, says of the call; None if it says nothing of it."""
    if type(error) is TimeoutError:
        return Phase.ACTIVE
    if is_foreign(error):
        return Phase.FAILED
    return next((PHASES.get(name) for name in _modal_names(error) if name in PHASES or name in ERRORS), None)


def error_of(error: BaseException, doing: str) -> RemoteError:
    """`error`, met while `doing`, as the failure to ask that it is."""
    message = f"{doing}: {message_of(error)}"
    names = _modal_names(error)
    if "ResourceExhaustedError" in names:
        return exhausted(message_of(error), retry_hint(error), doing)
    make = next((ERRORS[name] for name in names if name in ERRORS), Unavailable)
    return make(message)


def exhausted(said: str, retry_after_s: float | None, doing: str) -> RemoteError:
    """The two faces of one status code: "slow down", and "no more money".

    A hint when to come back means the first, whatever the words. Without one the words decide, and words that say
    nothing mean the first: to wait in vain is cheaper than to give up a night for a passing limit. Only the server's
    words count: what we were `doing` may name a study called `budget`.
    """
    message = f"{doing}: {said}"
    if retry_after_s is None and _speaks_of(said, SPEND_WORDS) and not _speaks_of(said, RATE_WORDS):
        return SpendLimitReached(f"{message}; nothing new can start until the limit is raised in the workspace")
    return Throttled(message, retry_after_s=retry_after_s)


def retry_hint(error: BaseException) -> float | None:
    """The seconds to wait that the server attached to `error`, or None."""
    # The public attribute of the class warns about its own retirement; the details have no other home yet.
    details: Any = getattr(error, "_grpc_details", None) or ()
    for detail in details if isinstance(details, list | tuple) else ():
        seconds = getattr(detail, "retry_after_secs", None)
        if isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds >= 0:
            return float(seconds)
    return None


def message_of(error: BaseException) -> str:
    """The text of `error` as one bounded, safe line; its class where it has none."""
    return shorten(visible(str(error).strip()), MAX_MESSAGE) or type(error).__name__


def is_foreign(error: BaseException) -> bool:
    """Whether `error` is of neither modal nor its transport: raised by the remote code and sent pickled, or a defect.

    Which of the two, only the platform's record of the call can tell.
    """
    origins = {each.__module__.partition(".")[0] for each in type(error).__mro__}
    return not _modal_names(error) and not origins & {"grpclib", "h2", "aiohttp"} and type(error) is not TimeoutError


def is_missing(error: BaseException) -> bool:
    """Whether `error` says that what was asked for does not exist."""
    return isinstance(error, FileNotFoundError) or "NotFoundError" in _modal_names(error)


def _modal_names(error: BaseException) -> list[str]:
    return [each.__name__ for each in type(error).__mro__ if each.__module__ == "modal.exception"]


def _speaks_of(message: str, words: tuple[str, ...]) -> bool:
    lowered = message.lower()
    return any(word in lowered for word in words)
