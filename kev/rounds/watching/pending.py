"""What became of an attempt whose spawn was never answered: adopt it, wait, or give it up. Pure, and never a guess.

The nonce in the trial's lease is proof; so is an answer that names the read. Absence is proof only once the
provider's list, asked long enough afterwards, holds no call that could be it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kev.compute.protocol import CallSummary
from kev.ledger.units import Attempt, Unit
from kev.records.lease import Lease
from kev.records.ledger import Order

ABSENT_S = 900.0
"""A call that was accepted is in the provider's list by then, and a container that runs has taken its lease.

Counted by this watcher's own monotonic clock: the wall clock may have been set forward.
"""


@dataclass(frozen=True, slots=True)
class Adopt:
    """The attempt has this call."""

    call: str
    how: str


@dataclass(frozen=True, slots=True)
class Abandon:
    """Nothing of it is alive; it counts all the same, since it may have cost something."""

    text: str


@dataclass(frozen=True, slots=True)
class Undecided:
    """Wait; `text` says for what."""

    text: str


def settle_pending(
    unit: Unit, attempt: Attempt, *, silent_s: float, lease: Lease | None, unknown: Sequence[CallSummary] | None,
    answers: Mapping[str, Any],
) -> Adopt | Abandon | Undecided:  # fmt: skip
    """What is known of `attempt`, for which nothing was sent any more for `silent_s` seconds at least.

    `unknown` are the calls of its function that the ledger does not know, or None if the provider did not say;
    `answers` what those of them returned that ended.
    """
    if lease is not None and lease.nonce == attempt.nonce and lease.call_id:
        return Adopt(lease.call_id, "its lease has the nonce")
    for call, answer in answers.items():
        if isinstance(answer, dict) and _names(answer, unit.order):
            return Adopt(call, f"its answer names the {unit.order.kind}")
    if unknown is None:
        return Undecided("the provider does not list its calls now")
    if silent_s < ABSENT_S:
        return Undecided(f"its spawn was not answered; it is looked for for {ABSENT_S:.0f} s")
    active = [call.id for call in unknown if not call.phase.is_terminal]
    if active:
        return Undecided(f"{', '.join(active[:3])} may be it; waits for its lease or its end")
    return Abandon(f"after {silent_s:.0f} s nothing of it is alive at the provider")


def _names(answer: Mapping[str, Any], order: Order) -> bool:
    """Whether the answer of a call says that it is about what `order` wants."""
    payload = order.payload
    if order.kind == "blend":
        return (answer.get("study"), answer.get("name")) == (payload["study"], payload["prefix"])
    return payload.get("name") is not None and answer.get("name") == payload["name"]
