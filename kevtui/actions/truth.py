"""A fresh read of what an action rests on. Reads, asks nobody, and locks nothing."""

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar

from kev import files
from kev.budget import MAX_READING_AGE, Account
from kev.clock import Clock
from kev.commitments import UNSEEN, Commitments, commitments
from kev.control import read_control
from kev.errors import KevError, NotFound, UsageError
from kev.ledger.book import Ledger
from kev.ledger.units import Unit, Units
from kev.records.base import read_record
from kev.records.watcher import WatcherRecord
from kev.rounds.specs import LoadedSpec, find_root, load_spec
from kev.session import Session, read_session, session_name
from kevtui import format as shown
from kevtui.actions.alive import is_process
from kevtui.actions.proposal import Check, digest_of
from kevtui.observe.target import STATE_SUFFIX, resolve

if TYPE_CHECKING:
    from kev.records.control import Control

WATCHER_SILENT_S = 600.0
"""A watcher that has made no pass for this long is taken for dead; starting another is then the engine's lock to
decide."""


class OnRecord(TypedDict, total=False):
    """The fields of a Proposal that say where it is put on record."""

    session: str
    state_file: str


@dataclass
class Truth:
    """The files under a root as they are now. Each is read once; make a new one to look again."""

    root: Path
    clock: Clock
    wanted_session: str | None = None

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @cached_property
    def units(self) -> Units:
        """What the ledger holds. Raises DamagedFile."""
        return Ledger(self.runs).read()

    @cached_property
    def state_path(self) -> Path:
        """The state file of the session that pays. Raises NotFound or UsageError, saying which there are."""
        wanted = self.wanted_session or os.environ.get("KEV_SESSION")
        names = [name for name in files.list_names(self.runs) if name.endswith(STATE_SUFFIX) and name[0] != "."]
        if wanted is not None:
            if f"{wanted}{STATE_SUFFIX}" not in names:
                raise NotFound(f"no session {wanted} in {self.runs}")
            return self.runs / f"{wanted}{STATE_SUFFIX}"
        if not names:
            raise NotFound(f"no session in {self.runs}: open one first, so that it is known what may be spent")
        if len(names) > 1:
            listed = ", ".join(name.removesuffix(STATE_SUFFIX) for name in names)
            raise UsageError(f"several sessions in {self.runs}: name one of {listed} with --session")
        return self.runs / names[0]

    @property
    def session_or_none(self) -> str | None:
        """The name of the session, where it is known which."""
        try:
            return session_name(self.state_path)
        except KevError:
            return None

    @cached_property
    def session(self) -> Session:
        return read_session(self.state_path)

    @cached_property
    def control(self) -> "Control":
        return read_control(self.state_path)

    @cached_property
    def watcher(self) -> WatcherRecord | None:
        """What the session's watcher last said; None where there is none. Raises DamagedFile."""
        try:
            return read_record(self.runs / f"{session_name(self.state_path)}-watcher.json", WatcherRecord)
        except NotFound:
            return None

    def watcher_alive(self) -> bool:
        """Whether a watcher is believed to be at work, as far as that can be told without its lock."""
        record = self.watcher
        if record is None or record.state == "done":
            return False
        if record.host == os.uname().nodename:
            return is_process(record.process)
        return self.clock.now().timestamp() - record.at < WATCHER_SILENT_S

    def round(self, name: str) -> LoadedSpec:
        """The spec that `name` means: r41, 41 or a path. Raises NotFound, UsageError or DamagedFile."""
        target = resolve(name, root=self.root, cwd=self.root)
        if target.spec is None:
            raise UsageError(f"{name} is no round; name one, such as r41, or the path of its spec")
        return load_spec(target.spec, self.root)

    def only_round(self) -> str:
        """The one round that there is. Raises UsageError naming them where there are several, or NotFound."""
        names = [name for name in files.list_names(self.root / "experiments" / "rounds") if name.endswith(".json")]
        if len(names) == 1:
            return names[0].removesuffix(".json")
        if not names:
            raise NotFound(f"no round in {self.root / 'experiments' / 'rounds'}")
        raise UsageError(f"which round? There are {', '.join(name.removesuffix('.json') for name in names[-8:])}")

    def round_of(self, units: Iterable[Unit], name: str | None) -> LoadedSpec:
        """The round that `units` belong to, or the one called `name`."""
        numbers = {unit.order.round for unit in units} - {None}
        if name is None and len(numbers) == 1:
            name = f"r{numbers.pop()}"
        return self.round(name if name is not None else self.only_round())

    def options(self, loaded: LoadedSpec) -> list[str]:
        """What every command of a round is given."""
        session = self.session_or_none
        return [*self.spec_options(loaded), *(["--session", session] if session else []), "--json"]

    def spec_options(self, loaded: LoadedSpec) -> list[str]:
        """The spec as a command that runs in the root names it."""
        if not loaded.path.is_relative_to(self.root):
            return [str(loaded.path), "--root", str(self.root)]
        inside = find_root(loaded.path) == self.root
        return [str(loaded.path.relative_to(self.root)), *([] if inside else ["--root", "."])]

    def shown(self, path: Path) -> str:
        """A path as it is shown: from the root, where it is under it."""
        return str(path.relative_to(self.root) if path.is_relative_to(self.root) else path)

    def record(self) -> OnRecord:
        """Where an action of this session is put on record."""
        session = self.session_or_none
        return {"session": session, "state_file": str(self.state_path)} if session else {}

    # ------------------------------------------------------------------------------------------------------ money

    @property
    def reading_age_s(self) -> float | None:
        readings = self.session.readings
        return (self.clock.now() - readings[-1].at).total_seconds() if readings else None

    def account(self, own: Collection[str] = ()) -> Account:
        """The figures of the spend rule, without what the units `own` may still cost. Raises DamagedFile."""
        session = self.session
        out = self._out(own)
        spent = session.spent
        return Account(session.authorization, session.reserve, spent.usd if spent else None, out.committed)

    def _out(self, own: Collection[str]) -> Commitments:
        session = self.session
        at = session.readings[-1].at if session.readings else self.clock.now()
        return commitments(self.runs, session, self.units, at.timestamp(), own=own)

    def money_checks(self, bound: Decimal | None, own: Collection[str] = ()) -> list[Check]:
        """Whether the spend rule would admit `bound`, None where nobody knows what it may cost. The engine asks the
        meter again at the moment of doing."""
        age = self.reading_age_s
        fresh = age is not None and 0 <= age <= MAX_READING_AGE
        source = self.session.source
        detail = f"{shown.age(age)} old, from {source}" if age is not None else f"none in {source}"
        if age is not None and age < 0:
            detail = f"its time is ahead of this clock, in {source}"
        checks = [Check("the billing reading is fresh", fresh, detail if fresh else f"{detail}; read the meter first")]
        account = self.account(own)
        headroom = account.headroom
        if not account.committed.complete:
            checks.append(Check("what is committed is known", False, "repair or settle the damaged records first"))
        if bound is None:
            checks.append(Check("the authorization covers it", False, "what it may cost is not known"))
        elif headroom is None:
            checks.append(Check("the authorization covers it", False, "the spend is unknown; read the meter first"))
        else:
            covered = bound < headroom
            figures = f"bound {shown.money(bound)}, headroom {shown.money(headroom)}"
            text = "" if covered else "; it cannot be confirmed past the authorization"
            checks.append(Check("the authorization covers it", covered, figures + text))
        return checks

    def money_facts(self, bound: Decimal | None, own: Collection[str] = ()) -> list[tuple[str, str]]:
        """The figures of the preview; a bound of None is not known, and neither is what is left after it."""
        account = self.account(own)
        headroom = account.headroom
        word = "simulated " if self.session.simulated else ""
        after = None if headroom is None or bound is None else headroom - bound
        return [
            ("bound", "not known" if bound is None else f"{word}{shown.money(bound)} at most"),
            ("spent", f"{word}{shown.money(account.spent)}"),
            ("committed", self._committed_in_words(account, own)),
            ("reserve", f"{shown.money(account.reserve)} of {shown.money(account.authorization)}"),
            ("headroom", f"{shown.money(headroom)}, {'not known' if after is None else shown.money(after)} after it"),
        ]

    def _committed_in_words(self, account: Account, own: Collection[str]) -> str:
        # A panel counts what is unsettled only; the spend rule also what a reading may lack.
        unseen = sum((part.usd or Decimal(0) for part in self._out(own).parts if part.name == UNSEEN), Decimal(0))
        words = f"{shown.money(account.committed.usd)}{'' if account.committed.complete else ' or more'}"
        return f"{words}, of which {shown.money(unseen)} {UNSEEN}" if unseen else words

    def not_paused(self, *, continues: bool = False) -> Check:
        """Whether the session may start something."""
        control = self.control
        free = control.mode == "running" or (control.mode == "soft" and continues)
        by = f" by {control.who}" if control.who else ""
        return Check("the session is not paused", free, "" if free else f"{control.mode}{by}: {control.reason}")


def round_name(loaded: LoadedSpec) -> str:
    """How a round is called on a command line: r41, or the path of its spec where that has no name of its own."""
    return loaded.path.stem if loaded.path.parent.name == "rounds" else str(loaded.path)


def spec_digest(loaded: LoadedSpec) -> str:
    return digest_of([files.read_bytes(loaded.path)])


def guarded(text: str, work: Callable[[], list[Check]]) -> list[Check]:
    """What `work` finds; where it cannot even be told, one check called `text` that is not met."""
    try:
        return work()
    except KevError as error:
        return [Check(text, False, str(error))]


Known = TypeVar("Known")


def known(work: Callable[[], list[Known]]) -> list[Known]:
    """What `work` finds, or nothing where a file keeps it from being known; a check says so."""
    try:
        return work()
    except KevError:
        return []
