"""One hand on the wheel: who may act on a session from a dashboard, and how another asks for it.

`runs/.actions/control-<session>.lock` is held by the dashboard in control for as long as it lives; its one line says
who that is. `control-<session>.ask.json` is another one's wish to have it.
"""

import os
from contextlib import ExitStack
from pathlib import Path

from kev import files
from kev.clock import Clock
from kev.errors import KevError, LockHeld
from kevtui.actions.accept import who
from kevtui.actions.holder import Holder, control_lock, holder_of, parse_holder, read_ask


class Control:
    """This dashboard's hold on one session. Every method may wait for a disk: call them from a thread."""

    def __init__(self, runs: Path, session: str, clock: Clock) -> None:
        self._lock = control_lock(runs, session)
        self._ask = self._lock.with_suffix(".ask.json")
        self._clock = clock
        self._held = ExitStack()
        self.mine = False
        self.is_asking = False

    def take(self) -> Holder | None:
        """Take control. Returns None if it is ours now, else who has it. Raises KevError if it cannot be told."""
        me = self._me()
        try:
            self._held.enter_context(files.locked(self._lock, words=me.line()))
        except LockHeld as held:
            return parse_holder(held.holder)
        except OSError as error:
            raise KevError(f"{self._lock}: cannot be locked ({error.strerror or error})") from None
        self.mine, self.is_asking = True, False
        asked = self.asked_by()
        if asked is not None and asked.process == me.process and asked.who == me.who:
            files.remove(self._ask)
        return None

    def holder(self) -> Holder | None:
        """Who has it at this moment, found out without taking it."""
        return holder_of(self._lock)

    def give(self) -> None:
        """Let go of it, for whoever asks next."""
        self.mine = False
        self._held.close()

    def ask(self) -> None:
        """Tell the holder that this dashboard would like to have it. Raises OSError."""
        me = self._me()
        self.is_asking = True
        files.write_atomic(self._ask, files.dump_json({"who": me.who, "process": me.process, "at": round(me.since)}))

    def asked_by(self) -> Holder | None:
        """Who asks for it, if anybody."""
        return read_ask(self._ask)

    def _me(self) -> Holder:
        return Holder(who(), os.getpid(), self._clock.now().timestamp())
