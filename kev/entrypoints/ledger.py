"""The spawn record of a study: every attempt is in it before its spawn, and its call as soon as that is known.

An attempt without a call is one whose spawn was interrupted; its container, if there is one, shows the nonce in its
lease. The ledger is written under the study's lock.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from kev import files
from kev.budget import recorded
from kev.errors import NotFound, Refused
from kev.records.base import read_record, write_record
from kev.records.spawn import Attempt, SpawnRecord


def record_path(runs: Path, study: str) -> Path:
    return runs / f"{study}.spawn.json"


@contextmanager
def study_lock(runs: Path, study: str) -> Iterator[None]:
    """One launcher or continuation of a study at a time. Raises LockHeld."""
    with files.locked(runs / f".continue-{study}.lock"):
        yield


@dataclass
class Ledger:
    """The spawn record in a file, and the only way it is changed here."""

    path: Path
    record: SpawnRecord

    @classmethod
    def read(cls, runs: Path, study: str) -> "Ledger":
        """Raises NotFound, or DamagedFile."""
        path = record_path(runs, study)
        return cls(path, read_record(path, SpawnRecord))

    @classmethod
    def find(cls, runs: Path, study: str) -> "Ledger | None":
        """The ledger, or None if the study has none. Raises DamagedFile."""
        try:
            return cls.read(runs, study)
        except NotFound:
            return None

    @classmethod
    def new(
        cls, runs: Path, study: str, *, gpu: str, timeout: int, bound: Decimal, full_weight: bool, plan_sha256: str
    ) -> "Ledger":
        """A ledger without an attempt; nothing is written yet."""
        record = SpawnRecord(
            name=study, calls={}, attempts={}, bound_usd=recorded(bound), gpu=gpu, timeout=timeout,
            full_ft=full_weight, modal_retries=0, plan_sha256=plan_sha256,
        )  # fmt: skip
        return cls(record_path(runs, study), record)

    def begin(self, label: str, at: float) -> Attempt:
        """Add an attempt whose spawn is about to be tried."""
        attempt = Attempt(nonce=secrets.token_hex(16), call=None, at=at)
        self._save(label, None, [*self.attempts(label), attempt])
        return attempt

    def started(self, label: str, nonce: str, call: str) -> None:
        """Put the call of an attempt on record; it is the trial's current one."""
        entries = [self._with(each, call=call) if each.nonce == nonce else each for each in self.attempts(label)]
        self._save(label, call, entries)

    def withdraw(self, label: str, nonce: str) -> None:
        """Take back an attempt whose spawn was refused: no container was ever asked for."""
        entries = [each for each in self.attempts(label) if each.nonce != nonce]
        last = entries[-1].call if entries else None
        self._save(label, last, entries)

    def abandon(self, label: str, nonce: str, at: float) -> None:
        """Give up an attempt that never took the lease. It still counts, since its container may have cost money."""
        entries = [self._with(each, abandoned=at) if each.nonce == nonce else each for each in self.attempts(label)]
        self._save(label, self.record.calls.get(label), entries)

    def point(self, label: str, call: str) -> None:
        """Make `call` the trial's current one without an attempt: it scores, and does not train."""
        self._save(label, call, self.attempts(label))

    def attempts(self, label: str) -> list[Attempt]:
        return list(self.record.attempts.get(label, []))

    @property
    def is_unused(self) -> bool:
        """Whether nothing was ever spawned, or was about to be."""
        return not self.record.calls and not any(self.record.attempts.values())

    def _save(self, label: str, call: str | None, entries: list[Attempt]) -> None:
        calls, attempts = dict(self.record.calls), dict(self.record.attempts)
        calls[label], attempts[label] = call, entries
        if not entries and call is None:
            del calls[label], attempts[label]
        self.record = self.record.model_copy(update={"calls": calls, "attempts": attempts})
        write_record(self.path, self.record)

    @staticmethod
    def _with(attempt: Attempt, **changes: Any) -> Attempt:
        return attempt.model_copy(update=changes)


def check_name_is_unused(runs: Path, study: str) -> None:
    """Raises Refused if anything here has that name: numbers of two studies must never meet under one."""
    if (runs / study).exists():
        raise Refused(f"study {study}: runs/{study} exists; a name is never used again")
