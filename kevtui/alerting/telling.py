"""Lines, and the hook beside them: what `kevtui session ARG --plain --hook` does where nobody has a screen open."""

import os
from dataclasses import replace

from kev.errors import UsageError
from kevtui.alerting.herald import Herald
from kevtui.headless.output import complain
from kevtui.headless.plain import Source
from kevtui.observe.snapshot import Snapshot
from kevtui.settings import read_settings, settings_path

LEAVE_S = 10.0
"""How long the end waits for a hook that is under way."""


class TellingSource:
    """A source whose Snapshots' alerts the hook is told of as they pass."""

    def __init__(self, source: Source[Snapshot], herald: Herald) -> None:
        self._source = source
        self._herald = herald

    def observe(self) -> Snapshot:
        snapshot = self._source.observe()
        self._herald.take(snapshot)
        return snapshot

    def wait(self, timeout_s: float) -> bool:
        return self._source.wait(timeout_s)

    def close(self) -> None:
        """Let what was raised last still be told."""
        if self._herald.hook is not None and not self._herald.hook.wait(LEAVE_S):
            self._herald.close()


def telling(source: Source[Snapshot]) -> TellingSource:
    """`source` with the hook of the user's settings. Raises UsageError where there is none."""
    choices = read_settings().alerts
    if not choices.hook:
        raise UsageError(f"--hook: {settings_path(os.environ)} names none; docs/alerts.md says how")

    only_hook = replace(choices, bell=None, notify=None)
    return TellingSource(source, Herald(only_hook, write=lambda _: None, complain=complain, environment=os.environ))
