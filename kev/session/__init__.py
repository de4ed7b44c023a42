"""A session: what it may spend, what it has spent, and what is still out; and the journal of what happened in it.

The state lives in `runs/<session>-state.json`, in this schema (amounts in US dollars, times ISO 8601 with an offset):

    session            name
    sample             true where all of it is made up, to show what a session looks like
    simulated          true where no real money is spent
    authorization_usd  what may be spent in all
    reserve_usd        kept back; a tenth of the authorization where absent
    baseline_usd       the provider's meter when the session began
    cycle              billing cycle of the baseline, "2026-10"
    readings           [{at, metered_usd, billed_usd, source}]
    studies            {name: {bound_usd, calls: {label: call or null}, status}}
    reads              {batch: {bound_usd, status}}
    candidates         {size: what is known of the candidate}
    decisions          [what a person must decide]
    ai_gateway         {authorization_usd, spent_usd}
    rounds             [specs of the rounds that it was opened for]
    opened_at, closed_at, closed_reason

`python -m kev.session` opens, shows and closes one.

The public state file of an earlier engine is read as well, and where there is no state file, the `budget` block of a
round's spec says what may be spent. All three come out as one `Session`. A state file that is empty or damaged raises
DamagedFile: taking it for a fresh session would give back all the headroom.

What happened goes to `runs/<session>-events.jsonl`, which is only ever appended to.
"""

from kev.session.journal import EVENTS_SUFFIX, Journal, append_event, events_path, parse_events, read_events
from kev.session.state import (
    change_locked_state,
    create_state,
    lock_path,
    update_state,
    utc_text,
    with_reading,
)
from kev.session.view import (
    SETTLED,
    STATE_SUFFIX,
    Reading,
    Session,
    Work,
    is_settled,
    parse_session,
    read_session,
    session_name,
    session_of_budget,
    session_of_state,
)

__all__ = [
    "EVENTS_SUFFIX",
    "SETTLED",
    "STATE_SUFFIX",
    "Journal",
    "Reading",
    "Session",
    "Work",
    "append_event",
    "change_locked_state",
    "create_state",
    "events_path",
    "is_settled",
    "lock_path",
    "parse_events",
    "parse_session",
    "read_events",
    "read_session",
    "session_name",
    "session_of_budget",
    "session_of_state",
    "update_state",
    "utc_text",
    "with_reading",
]
