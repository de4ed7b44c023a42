"""What can go wrong between here and the place where work runs.

These are failures to ask, never failures of the work: a call whose container crashed is a phase, not an exception.

    RemoteError
    ├── Unavailable          no answer, or none that means anything; ask again later
    ├── Throttled            asked too often; ask again after `retry_after_s`
    ├── SpendLimitReached    the workspace may spend no more; asking again does not help
    ├── Unreadable           there is an answer, and it means nothing
    ├── AuthFailed           the token is missing, wrong, or not allowed to do this
    └── NotDeployed          the app, or a function of it, is not there
"""

from kev.errors import KevError


class RemoteError(KevError):
    """The place where work runs could not be asked, or refused.

    `may_have_happened` is true where the request may have been carried out although its answer was lost: it must
    not be repeated before someone has looked.
    """

    retryable = False
    """Whether the same request may succeed later without anyone changing anything."""

    def __init__(self, message: str, *, may_have_happened: bool = False) -> None:
        super().__init__(message)
        self.may_have_happened = may_have_happened


class Unavailable(RemoteError):
    """Nobody answered in time, or the answer was an internal error. It says nothing about the work itself."""

    retryable = True


class Throttled(RemoteError):
    """Asked too often. `retry_after_s` is the wait that the other side asked for, in seconds, or None."""

    retryable = True

    def __init__(self, message: str, *, retry_after_s: float | None = None, may_have_happened: bool = False) -> None:
        super().__init__(message, may_have_happened=may_have_happened)
        self.retry_after_s = retry_after_s


class SpendLimitReached(RemoteError):
    """The workspace has reached its spend limit. Deliberately no kind of Throttled: waiting does not lift it."""


class Unreadable(RemoteError):
    """An answer came that cannot be what was asked for: an amount that is no number, say. It stands for nothing."""


class AuthFailed(RemoteError):
    """The token is missing, unknown, or not allowed to do this."""


class NotDeployed(RemoteError):
    """The app or function that was asked for is not deployed, or was stopped."""
