"""What a dashboard that may act has beside its eyes: control of the session, and `kevtui act` to run.

An action is a run of `kevtui act` in a process of its own: the screen loads nothing for it and waits for nothing, and
what a key does and what a script does cannot differ.
"""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from kev.clock import Clock
from kev.errors import KevError
from kevtui.actions.control import Control
from kevtui.actions.holder import Holder
from kevtui.actions.home import environment
from kevtui.actions.sight import Eyes, Sight, seen_actions
from kevtui.observe.snapshot import Alert

if TYPE_CHECKING:
    from kevtui.actions.standing import StandingFile

ACT = (sys.executable, "-m", "kevtui", "act")


class Hands(Eyes):
    """Acts on the sessions of one root."""

    may_act: ClassVar[bool] = True

    def __init__(
        self, root: Path, clock: Clock, *, undo_window_s: float, session: str | None = None,
        command: Sequence[str] = ACT,
    ) -> None:  # fmt: skip
        super().__init__(root, clock)
        self.undo_window_s = undo_window_s
        self._root = root
        self._command = tuple(command)
        self._named = session
        self._session: str | None = None
        self._control: Control | None = None
        self._wanting = True
        """A dashboard takes control as it opens, if nobody has it."""

    # ------------------------------------------------------------------------------------------------ from a thread

    def look(self, session: str | None) -> Sight:
        """What there is now; takes control if it is wanted and free."""
        control = self._control_of(session)
        holder: Holder | None = None
        trouble = ""
        if self._wanting and not control.mine:
            try:
                holder = control.take()
            except KevError as error:
                trouble = str(error)
            if control.mine or not control.is_asking:
                self._wanting = False
        elif not control.mine:
            holder = control.holder()
        asked = control.asked_by() if control.mine else None
        actions = seen_actions(self._runs, self._clock.now().timestamp())
        return Sight(actions, control.mine, holder, asked, trouble)

    def ask_or_give(self, session: str | None) -> str:
        """Ask for control, or give it to whoever asks. Returns what was done, for a person."""
        control = self._control_of(session)
        if not control.mine:
            self._wanting = True
            if control.holder() is None:
                return "nobody has control: taking it"
            control.ask()
            return "asked for control: it is yours when it is given"
        asked = control.asked_by()
        if asked is None:
            return "you have control, and nobody asks for it"
        control.give()
        return f"control is given to {asked.describe()}"

    # ---------------------------------------------------------------------------------- what stands, from a thread

    def keep_alerts(self, session: str | None, state_file: str | None, alerts: Iterable[Alert]) -> None:
        """Write down that exactly `alerts` stand, and tell the journal what is new of that. Raises KevError."""
        self._standing(session, state_file).keep(alerts)

    def acknowledge(self, session: str | None, state_file: str | None, alerts: Iterable[Alert]) -> None:
        """Put on record that somebody knows of `alerts` as they are. Raises KevError."""
        self._standing(session, state_file).acknowledge(alerts)

    def withdraw(self, session: str | None, state_file: str | None) -> None:
        """Take every acknowledgement back. Raises KevError."""
        self._standing(session, state_file).withdraw()

    def _standing(self, session: str | None, state_file: str | None) -> "StandingFile":
        from kevtui.actions.standing import StandingFile

        return StandingFile(self._runs, session, self._root / state_file if state_file else None, self._clock)

    def _control_of(self, session: str | None) -> Control:
        session = session or ""
        if self._control is None or session != self._session:
            wanting = self._control is None or self._control.mine
            if self._control is not None:
                self._control.give()
            self._control, self._session = Control(self._runs, session, self._clock), session
            self._wanting = wanting
        return self._control

    # -------------------------------------------------------------------------------------------------- on the loop

    async def propose(self, verb: str, target: str | None, options: Sequence[str] = ()) -> dict[str, Any]:
        """What an action would do, by a fresh read."""
        return await self._act(verb, target, *options, "--dry-run")

    async def do(self, verb: str, target: str | None, options: Sequence[str] = ()) -> dict[str, Any]:
        """Do it, if it still is what it was. Returns once it is on record and started, or refused."""
        return await self._act(verb, target, *options, "--beside", "--no-wait")

    async def _act(self, verb: str, target: str | None, *options: str) -> dict[str, Any]:
        name = self._named or self._session
        named = ["--session", name] if name and verb != "open" else []
        what = [verb, target] if target else [verb]
        command = [*self._command, *what, *options, "--root", str(self._root), *named, "--json"]
        done = await _run(command)
        out, err = done.stdout, done.stderr
        try:
            report = json.loads(out)
        except ValueError:
            words = err.decode(errors="replace").strip().split("\n")[-1]
            report = {"state": "refused", "text": words or f"it ended with status {done.returncode}"}
        return report if isinstance(report, dict) else {}


async def _run(command: Sequence[str]) -> "subprocess.CompletedProcess[bytes]":
    """Run `command` to its end in a thread that nobody waits for when the dashboard ends. Raises OSError."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[subprocess.CompletedProcess[bytes]] = loop.create_future()

    def tell(done: "subprocess.CompletedProcess[bytes] | OSError") -> None:
        if answer.done():
            return
        if isinstance(done, OSError):
            answer.set_exception(done)
        else:
            answer.set_result(done)

    def work() -> None:
        try:
            # A session of its own: neither a hang-up nor ctrl-Z of the dashboard reaches it.
            done: subprocess.CompletedProcess[bytes] | OSError = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, env=environment(), start_new_session=True,
                check=False,
            )  # fmt: skip
        except OSError as error:
            done = error
        with suppress(RuntimeError):  # the dashboard has ended
            loop.call_soon_threadsafe(tell, done)

    threading.Thread(target=work, name="act", daemon=True).start()
    return await answer
