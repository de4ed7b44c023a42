"""Logs: one stream for the whole app, told apart by call, and the tail of one call.

A stream per call would cost one more request a second each.
"""

from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from datetime import UTC
from typing import Any

from kev.compute.classify import error_of
from kev.compute.client import ModalClient, load_modal
from kev.compute.errors import RemoteError
from kev.compute.protocol import CallRef, LogLine
from kev.text import visible

MAX_LINE = 4096
"""Characters of one line; the rest of a longer one follows as lines of its own."""

MAX_OPEN_LINES = 1000
"""Sources whose unfinished line is remembered."""

STREAM_GRACE_S = 120.0
"""Beyond the time after which the client itself ends an idle stream."""

ID_KINDS = {"fc-": "call_id", "ta-": "container_id", "fu-": "function_id", "in-": "input_id"}


class Logs:
    """The logs of one app."""

    def __init__(self, client: ModalClient) -> None:
        self._client = client

    async def stream(self, *, idle_s: float) -> AsyncGenerator[LogLine, None]:
        modal = load_modal()
        doing = f"follow the log of {self._client.app_name}"
        app = await self._client.ask(
            modal.App.lookup.aio(
                self._client.app_name, environment_name=self._client.environment, client=await self._client.open()
            ),
            doing,
        )
        assembler = LineAssembler()
        async with aclosing(self._entries(app.logs.stream.aio(timeout=idle_s), doing, idle_s)) as entries:
            async for entry in entries:
                for line in assembler.add(entry):
                    yield line
        for line in assembler.flush():
            yield line

    async def _entries(self, stream: Any, doing: str, idle_s: float) -> AsyncGenerator[Any, None]:
        try:
            while True:
                try:
                    # Waits for as long as nothing is logged, so it holds no place among the questions.
                    entry = await self._client.bounded(
                        anext(stream), doing, deadline_s=idle_s + STREAM_GRACE_S, counted=False
                    )
                except StopAsyncIteration:
                    return
                except RemoteError:
                    raise
                except Exception as error:
                    raise error_of(error, doing) from error
                yield entry
        finally:
            await stream.aclose()

    async def tail(self, ref: CallRef, n: int) -> list[LogLine]:
        modal = load_modal()
        call = modal.FunctionCall.from_id(ref.id, client=await self._client.open())
        return await self._client.ask(
            self._collect(call, ref, n), f"read the log of {ref.id}", deadline_s=self._client.deadlines.stream
        )

    @staticmethod
    async def _collect(call: Any, ref: CallRef, n: int) -> list[LogLine]:
        assembler, lines = LineAssembler(ref.id), deque[LogLine](maxlen=n)
        async for entry in call.logs.tail.aio(n):
            lines.extend(assembler.add(entry))
        lines.extend(assembler.flush())
        return list(lines)


class LineAssembler:
    """Makes whole lines of what containers wrote, which arrives in pieces that end anywhere.

    A line ends at a newline and nowhere else; a carriage return before it belongs to it, any other one is shown as
    an escape. An unfinished line waits for its rest, its source's next piece, up to MAX_LINE characters.
    """

    def __init__(self, call_id: str = "") -> None:
        self._call_id = call_id
        self._open: dict[tuple[str, ...], tuple[LogLine, str]] = {}

    def add(self, entry: Any) -> Iterator[LogLine]:
        """The lines that `entry` completes; `entry` has message, timestamp, source and context_ids."""
        line = self._about(entry)
        key = (line.container_id, line.call_id, line.source)
        _, rest = self._open.pop(key, (line, ""))
        *whole, rest = (rest + str(entry.message)).split("\n")
        for text in whole:
            yield from _pieces(line, text.removesuffix("\r"))
        while len(rest) > MAX_LINE:
            yield _with_text(line, rest[:MAX_LINE])
            rest = rest[MAX_LINE:]
        if rest:
            if len(self._open) >= MAX_OPEN_LINES:
                yield _with_text(*self._open.pop(next(iter(self._open))))
            self._open[key] = (line, rest)

    def flush(self) -> Iterator[LogLine]:
        """What is left when nothing more comes."""
        for line, rest in self._open.values():
            yield _with_text(line, rest)
        self._open.clear()

    def _about(self, entry: Any) -> LogLine:
        ids = {"call_id": self._call_id}
        for each in entry.context_ids:
            kind = ID_KINDS.get(each[:3])
            if kind is not None:
                ids[kind] = visible(each)
        return LogLine("", entry.timestamp.astimezone(UTC), str(entry.source), **ids)


def _pieces(line: LogLine, text: str) -> Iterator[LogLine]:
    for start in range(0, max(1, len(text)), MAX_LINE):
        yield _with_text(line, text[start : start + MAX_LINE])


def _with_text(line: LogLine, text: str) -> LogLine:
    return LogLine(
        visible(text), line.at, line.source, line.call_id, line.container_id, line.function_id, line.input_id
    )
