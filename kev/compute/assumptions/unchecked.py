"""What no client can check."""

from kev.compute.contract import Assumption

UNCHECKED = [
    Assumption(
        "spawn-deduplicated",
        "a spawn that the client sends again because the answer was lost starts one call only",
        "Not checkable: an answer cannot be lost on purpose. Nothing relies on it; a doubtful spawn is looked for.",
    ),
    Assumption(
        "throttle-hint",
        "RESOURCE_EXHAUSTED for a rate carries a retry instruction, for a spend limit it carries none",
        "Not checked: it would take hammering the service, or spending up to the limit.",
    ),
    Assumption(
        "result-expiry",
        "a result is kept for seven days after the end of its call, then OutputExpiredError",
        "Not checked: it takes a week.",
    ),
    Assumption(
        "lost-container",
        "a call that the platform gives up is InternalFailure",
        "Not checkable: the platform cannot be made to lose a container for good.",
    ),
    Assumption(
        "claim-kept",
        "a Dict entry is dropped only after a week in which nobody asked for it",
        "Not checked: it takes a week. A lease whose claims are gone is judged by its file alone.",
    ),
]
