"""Search in a log, forwards or backwards, a block at a time: whoever calls decides how long, and can stop between."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from kev.errors import UsageError
from kevtui.observe.log_file import BLOCK, LogFile

REGEX_MARK = "~"


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for: plain text, or a regular expression after a leading `~`.

    All in lower case means that case does not matter, as in most pagers.
    """

    text: str
    pattern: re.Pattern[bytes]
    shown: re.Pattern[str]
    """The same for text that has been made visible, to mark the matches on the screen."""

    @classmethod
    def parse(cls, text: str) -> "Query":
        """Raises UsageError for an empty text or an expression that does not compile."""
        source = text.removeprefix(REGEX_MARK) if text.startswith(REGEX_MARK) else re.escape(text)
        if not source:
            raise UsageError("nothing to search for")
        flags = re.IGNORECASE if text == text.lower() else re.NOFLAG
        try:
            return cls(text, re.compile(source.encode(), flags | re.MULTILINE), re.compile(source, flags))
        except (re.error, OverflowError) as error:
            raise UsageError(f"{source}: not a regular expression ({error})") from None


class Search:
    """One search through `log` from byte `origin` on; `found` is the start of the first line that matches.

    Forwards it looks at lines that start at or after `origin`, backwards at lines that start before it.
    """

    def __init__(self, log: LogFile, query: Query, origin: int, *, backwards: bool = False) -> None:
        self._log = log
        self._query = query
        self._backwards = backwards
        self._position = max(0, min(origin, log.size))
        self.found: int | None = None
        self.done = self._at_end()

    @property
    def position(self) -> int:
        """Bytes of the file up to which, or down to which, it has looked."""
        return self._position

    def run(self, budget_s: float, monotonic: Callable[[], float]) -> bool:
        """Search for about `budget_s` seconds. Returns whether it is over: found, or nothing left to look at."""
        end = monotonic() + budget_s
        while not self.done:
            self._step()
            if monotonic() >= end:
                break
        return self.done

    def _step(self) -> None:
        start, end = self._next_lines()
        data = self._log.text_of(start, end)
        matches = self._query.pattern.finditer(data)
        if self._backwards:
            match = None
            for match in matches:  # noqa: B007
                pass
        else:
            match = next(matches, None)
        self._position = start if self._backwards else end
        if match is not None:
            # An expression may match the empty end of the data, behind the last line.
            self.found = self._log.start_of(min(start + match.start(), end - 1))
        self.done = match is not None or self._at_end()

    def _next_lines(self) -> tuple[int, int]:
        """The bounds of some whole lines next in turn, about a block of them."""
        if self._backwards:
            return self._log.start_of(max(0, self._position - BLOCK)), self._position
        return self._position, self._log.end_of(min(self._log.size - 1, self._position + BLOCK))

    def _at_end(self) -> bool:
        return self._position <= 0 if self._backwards else self._position >= self._log.size
