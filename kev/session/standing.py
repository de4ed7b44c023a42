"""How a session stands: the sum that a launch would be held against, as far as it is known without asking anybody."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from kev.budget import MAX_READING_AGE, Account, dollars
from kev.commitments import Part, commitments
from kev.control import read_control
from kev.ledger.book import Ledger
from kev.ledger.units import Units
from kev.meter import describe_gap, is_alarming
from kev.session.state import utc_text
from kev.session.view import Reading, Session, read_session


@dataclass(frozen=True, slots=True)
class Standing:
    """The figures of a session at one moment. None is unknown, never zero."""

    session: Session
    at: datetime
    account: Account
    parts: tuple[Part, ...]
    """What is out, row by row."""
    mode: str
    """`running`, or how it is paused."""
    why: str = ""
    """Why it is paused."""

    @property
    def reading(self) -> Reading | None:
        readings = self.session.readings
        return readings[-1] if readings else None

    @property
    def age_s(self) -> float | None:
        """Seconds since the meter was read; negative where this machine's clock is behind the reading."""
        return (self.at - self.reading.at).total_seconds() if self.reading else None

    @property
    def is_fresh(self) -> bool:
        """Whether a launch could rest on the last reading."""
        return self.age_s is not None and 0 <= self.age_s <= MAX_READING_AGE

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON values; amounts are decimal text, so that nothing is rounded."""
        session, account, reading = self.session, self.account, self.reading
        spent = session.spent
        return {
            "session": session.name,
            "simulated": session.simulated,
            "at": utc_text(self.at),
            "opened_at": utc_text(session.opened_at) if session.opened_at else None,
            "closed_at": utc_text(session.closed_at) if session.closed_at else None,
            "mode": self.mode,
            "reason": self.why,
            "rounds": list(session.rounds),
            "authorization_usd": str(account.authorization),
            "reserve_usd": str(account.reserve),
            "baseline_usd": _text(session.baseline),
            "cycle": session.cycle,
            "metered_usd": _text(reading.metered if reading else None),
            "billed_usd": _text(reading.billed if reading else None),
            "alarm": reading is not None and is_alarming(reading.metered, reading.billed),
            "reading_at": utc_text(reading.at) if reading else None,
            "reading_age_s": self.age_s,
            "reading_is_fresh": self.is_fresh,
            "spent_usd": _text(account.spent),
            "carried_usd": _text(spent.carried if spent else None),
            "committed_usd": str(account.committed.usd),
            "committed_is_complete": account.committed.complete,
            "parts": [{"name": part.name, "usd": _text(part.usd)} for part in self.parts],
            "headroom_usd": _text(account.headroom) if account.committed.complete else None,
            "gateway_authorization_usd": _text(session.gateway_authorization),
            "gateway_spent_usd": _text(session.gateway_spent),
        }

    def lines(self) -> list[str]:
        """The sum, a row a line."""
        session, account, reading = self.session, self.account, self.reading
        word = "simulated " if session.simulated else ""
        closed = f", closed at {utc_text(session.closed_at)}" if session.closed_at else ""
        paused = f", paused ({self.mode}: {self.why or 'no reason given'})" if self.mode != "running" else ""
        headroom = account.headroom if account.committed.complete else None
        rows = [
            f"session {session.name}: {word}money{closed}{paused}",
            f"  authorization {_usd(account.authorization)}",
            f"- reserve {_usd(account.reserve)}",
            f"- spent {_usd(account.spent)} (baseline {_usd(session.baseline)}, "
            f"metered {_usd(reading.metered if reading else None)})",
            *(f"- {part}" for part in self.parts),
            f"= headroom {_usd(headroom)}, which a launch must stay below",
            f"  {self._age_in_words()}",
        ]
        if reading is not None and reading.billed is not None:
            alarm = "!!! billed is far above metered: " if is_alarming(reading.metered, reading.billed) else "  "
            rows.append(f"{alarm}{describe_gap(reading.metered, reading.billed)}")
        if session.gateway_authorization is not None:
            rows.append(f"  AI gateway {_usd(session.gateway_spent)} of {_usd(session.gateway_authorization)}")
        return rows

    def _age_in_words(self) -> str:
        if self.reading is None or self.age_s is None:
            return "the meter was never read: `python -m kev.session refresh`"
        when = f"the meter was read at {utc_text(self.reading.at)}"
        if self.age_s < 0:
            return f"{when}, which is ahead of this machine's clock"
        old = "" if self.is_fresh else f"; more than {MAX_READING_AGE:,.0f} s is too old to launch on"
        return f"{when}, {self.age_s:,.0f} s ago{old}"


def read_standing(state: Path, now: datetime) -> Standing:
    """The standing of the session whose state file is `state`. Asks nobody and writes nothing.

    Raises NotFound, or DamagedFile for a state, a ledger or a record that cannot be believed.
    """
    return standing_of(state, Ledger(state.parent).read(), now)


def standing_of(state: Path, units: Units, now: datetime) -> Standing:
    """As `read_standing`, for a caller that has read the ledger."""
    session = read_session(state)
    metered_at = session.readings[-1].at if session.readings else session.opened_at or now
    out = commitments(state.parent, session, units, metered_at.timestamp())
    spent = session.spent
    account = Account(session.authorization, session.reserve, spent.usd if spent else None, out.committed)
    control = read_control(state)
    return Standing(session, now, account, out.parts, control.mode, control.reason or "")


def _text(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount:f}"


def _usd(amount: Decimal | None) -> str:
    return "unknown" if amount is None else dollars(amount)
