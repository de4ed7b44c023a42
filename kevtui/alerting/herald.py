"""From one Snapshot to the next: what is news of its alerts goes to the terminal and to the hook."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from kevtui.alerting.book import AlertBook, News
from kevtui.alerting.choices import Choices
from kevtui.alerting.hook import Hook
from kevtui.alerting.signals import BELL, headline, notification
from kevtui.observe.snapshot import Alert, Severity, Snapshot
from kevtui.observe.states import RANK

AT_REST_S: Final = 5.0
"""Between two looks at alerts that did not change, while one of them may still be told or be over."""


class Herald:
    """Tells what is news, each by every way that the user wants for it. Every method belongs to one thread."""

    def __init__(
        self,
        choices: Choices,
        *,
        write: Callable[[str], object],
        complain: Callable[[str], object],
        environment: Mapping[str, str],
        ascii_only: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`write` is given what the terminal is to get; `complain`, from any thread, a line about a failing hook."""
        self._choices = choices
        self._write = write
        self._environment = environment
        self._ascii_only = ascii_only
        self._monotonic = monotonic
        self.book = AlertBook(choices.again)
        self.hook = (
            Hook(choices.hook, timeout_s=choices.hook_timeout_s, complain=complain, environment=environment)
            if choices.hook
            else None
        )
        self._last: tuple[Alert, ...] | None = None
        self._taken_at = 0.0

    def take(self, snapshot: Snapshot) -> list[News] | None:
        """Tell what is news in `snapshot`; the news, or None where there can be none."""
        now = self._monotonic()
        if snapshot.alerts is self._last and (self.book.settled or now - self._taken_at < AT_REST_S):
            return None
        self._last, self._taken_at = snapshot.alerts, now
        news = [one for one in self.book.take(snapshot.alerts, now) if one.alert.code not in self._choices.mute]
        if news:
            self._tell(sorted(news, key=lambda one: RANK[one.alert.severity]), snapshot)
        return news

    def close(self) -> None:
        """End a hook that is under way."""
        if self.hook is not None:
            self.hook.close()

    def _tell(self, news: list[News], snapshot: Snapshot) -> None:
        signals = BELL if _from(news, self._choices.bell) else ""
        if told := _from(news, self._choices.notify):
            title = f"SAMPLE {snapshot.title}" if snapshot.sample else snapshot.title
            lines = [headline(one, title) for one in told]
            signals += notification(lines, self._choices.notify_by, self._environment, ascii_only=self._ascii_only)
        if signals:
            self._write(signals)
        if self.hook is not None and (told := _from(news, self._choices.hook_from)):
            self.hook.tell([as_values(one) for one in told], context_of(snapshot))


def _from(news: list[News], least: Severity | None) -> list[News]:
    return [] if least is None else [one for one in news if RANK[one.alert.severity] <= RANK[least]]


def as_values(news: News) -> dict[str, Any]:
    """One alert as the hook's JSON has it."""
    alert = news.alert
    return {
        "id": alert.id, "kind": alert.code, "severity": str(alert.severity), "subject": alert.subject,
        "text": alert.text, "condition": alert.condition, "repeats": news.repeats,
    }  # fmt: skip


def context_of(snapshot: Snapshot) -> dict[str, Any]:
    """What the alerts of one run of the hook have in common."""
    return {
        "at": f"{snapshot.taken_at:%Y-%m-%dT%H:%M:%SZ}", "title": snapshot.title, "session": snapshot.session,
        "round": snapshot.round, "root": snapshot.root, "sample": snapshot.sample,
        "simulated": snapshot.money.simulated,
    }  # fmt: skip
