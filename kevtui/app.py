"""The dashboard: a screen over a stream of Snapshots.

Until the first frame nothing but Textual and the standard library is imported: the source, with all that reads and
checks files, is opened by a thread after it.
"""

import gc
import os
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from textual import events
from textual.message import Message
from textual.notifications import Notify, SeverityLevel
from textual.screen import Screen
from textual.timer import Timer

from kev.text import visible
from kevtui import garbage, glyphs, lifecycle
from kevtui.deliberate import Typing
from kevtui.exact_update import TerminalRows
from kevtui.feed import LISTEN_S, Feed, SnapshotSource
from kevtui.keymap import looking, of_live, of_one, of_replay
from kevtui.notice import Notice
from kevtui.options import PLAIN, Options
from kevtui.screens.panels import PanelsScreen
from kevtui.screens.watch import WatchScreen
from kevtui.tabs import Tab, Watched
from kevtui.themed_app import ThemedApp
from kevtui.widgets.tab_line import Mark, TabLine

if TYPE_CHECKING:
    from kevtui.alerting.desk import AlertDesk

__all__ = ["KevApp", "Options", "SnapshotSource", "run"]


LAYOUT_S = 0.5
"""So long after a key how the screen is arranged is kept; and an end waits for that no longer."""


class KevApp(ThemedApp):
    """Shows what `open_source` yields until it is told to quit."""

    CSS_PATH = Path(__file__).parent / "look.tcss"
    ENABLE_COMMAND_PALETTE = False
    DEFAULT_MODE = "tab 0"
    """Each session has a stack of screens of its own, which Textual calls a mode: a dialog stays with its session."""
    BINDINGS = []  # noqa: RUF012  the one table has them all

    class Arrived(Message):
        """A Snapshot was taken of the session of a tab."""

        def __init__(self, snapshot: Any, tab: Tab) -> None:
            self.snapshot = snapshot
            self.tab = tab
            super().__init__()

    class Trouble(Message):
        """Something beside the screen went wrong, and is worth a line on it."""

        def __init__(self, text: str) -> None:
            self.text = text
            super().__init__()

    class SourceFailed(Message):
        """The source of a tab raised; nothing more will come of it."""

        def __init__(self, error: Exception, tab: Tab) -> None:
            self.error = error
            self.tab = tab
            super().__init__()

    def __init__(
        self,
        open_source: Callable[[], SnapshotSource[Any]],
        *,
        title: str,
        options: Options = PLAIN,
    ) -> None:
        self._rows = TerminalRows()
        super().__init__(theme=options.theme, ascii_only=options.ascii)
        self.title = title
        self.animation_level = "none"
        self.options = options
        self._beside = options.beside
        self.typing = Typing(options.quiet_s, options.settle_s)
        has_past = options.open_past is not None
        table = options.bindings if options.more else of_one(options.bindings)
        self._of_past = of_replay(table, comes_back=has_past)
        is_live = options.command_player is None
        table = of_live(table, looks_back=has_past) if is_live else self._of_past
        may_act = options.may_act or any(other.may_act for other in options.more)
        self.bindings_table = table if may_act else looking(table)
        there = {binding.id: binding for binding in (*self.bindings_table, *(self._of_past if has_past else ()))}
        for binding in there.values():
            if binding.keys:
                self.bind(",".join(binding.keys), binding.action, description=binding.verb, show=False)
        self._sessions = [
            Watched(title, open_source, options.open_eyes, options.open_past, options.may_act, options.layout,
                    options.keep_layout),
            *options.more,
        ]  # fmt: skip
        self._tabs = [Tab(session, self.make_screen(session)) for session in self._sessions]
        self._layout_timer: Timer | None = None
        for session, tab in zip(self._sessions, self._tabs, strict=True):
            tab.feed = Feed(session.open_source, partial(self._deliver, tab), partial(self._fail, tab))
        for number, tab in enumerate(self._tabs):
            self.add_mode(f"tab {number}", tab.get_screen)
        self._here = self._tabs[0]
        self.failure: Exception | None = None

    def make_screen(self, session: Watched) -> PanelsScreen[Any]:
        """The screen of a session, which is there from the start: it shows every Snapshot."""
        bindings = self.bindings_table if session.may_act else looking(self.bindings_table)
        several = len(self._sessions) > 1
        screen = WatchScreen(
            self.ink, bindings, title=session.title, typing=self.typing, open_eyes=session.open_eyes,
            of_past=self._of_past, columns=self.options.columns, layout=session.layout,
            tabs=[Mark(each.title) for each in self._sessions] if several else (),
        )  # fmt: skip
        screen.look, screen.open_past = self.options.look, session.open_past
        screen.command_player = self.options.command_player
        return screen

    def on_mount(self) -> None:
        self.call_after_refresh(self._feed.start)
        self.set_interval(LISTEN_S, self.listen)
        self.set_interval(garbage.LOOK_S, lambda: garbage.sweep(self.typing.quiet_for(time.monotonic())))
        # What was in the terminal before a stop is not there after it.
        self.app_resume_signal.subscribe(self, lambda _: self._rows.forget())

    def on_unmount(self) -> None:
        for tab in self._tabs:
            tab.close()

    def listen(self) -> None:
        """Hear whether the source of what is looked at still answers: a volume may hang, and its thread with it."""
        self._here.listen()

    @property
    def _watch(self) -> PanelsScreen[Any]:
        """The screen of the session that is looked at."""
        return self._here.screen

    @property
    def _feed(self) -> Feed:
        return self._here.feed

    async def on_event(self, event: events.Event) -> None:
        # Here every key passes on its way to whatever has the focus, with the moment at which it was read.
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self.typing.pressed(event.time)
            if self._layout_timer is None and self._here.keeps_layout:
                self._layout_timer = self.set_timer(LAYOUT_S, self._keep_layout)
        await super().on_event(event)

    def _keep_layout(self) -> None:
        self._layout_timer = None
        self._here.keep_layout()

    def exit(self, result: int | None = None, return_code: int = 0, message: RenderableType | None = None) -> None:
        """End, and keep how the screen is left, if that does not take long."""
        keeping = self._here.keep_layout() if self.is_running else None
        if keeping is not None:
            keeping.join(LAYOUT_S)
        super().exit(result, return_code, message)

    # ------------------------------------------------------------------------------ Snapshots

    def _deliver(self, tab: Tab, snapshot: Any) -> None:
        self.post_message(self.Arrived(snapshot, tab))

    def _fail(self, tab: Tab, error: Exception) -> None:
        self.post_message(self.SourceFailed(error, tab))

    def on_kev_app_arrived(self, message: Arrived) -> None:
        # One that arrives while the screen is being taken down would find no panels.
        if self.is_running:
            self._take(message.tab, message.snapshot)
            self._tell_tabs()
            self._open_beside()
        if not gc.isenabled():
            self.call_after_refresh(self._settle)
        self._start_others()

    def _settle(self) -> None:
        """Once the first Snapshot can be seen: read what the first key will need, which would wait for it."""
        if not gc.isenabled():
            import_module("kevtui.screens.opening")
            garbage.settle()

    def _take(self, tab: Tab, snapshot: Any) -> None:
        screen = tab.screen
        if screen.desk is None:
            screen.desk = self.open_desk()
        tab.arrived(snapshot, here=tab is self._here)
        if screen.desk is not None:
            screen.desk.take(tab.snapshot, screen.writer)

    def open_desk(self) -> "AlertDesk | None":
        """What takes care of the alerts of a session; None where nobody is to be told, as of a night that is over."""
        if self.options.command_player is not None:
            return None
        from kevtui.alerting.desk import AlertDesk
        from kevtui.alerting.herald import Herald

        herald = Herald(
            self.options.alerts, write=self._signal, complain=self._complain, environment=os.environ,
            ascii_only=self.options.ascii,
        )  # fmt: skip
        return AlertDesk(herald, complain=self._complain)

    def _signal(self, sequences: str) -> None:
        """Ring, or ask for a notification: between two frames, on the loop."""
        if self._driver is not None:
            self._driver.write(sequences)

    def notify(
        self, message: str, *, title: str = "", severity: SeverityLevel = "information", timeout: float | None = None,
        markup: bool = False,  # noqa: ARG002
    ) -> None:  # fmt: skip
        """A notice. It may hold text from files, so that nothing in it is markup and nothing acts on the terminal."""
        lines = [visible(line) for line in message.split("\n")]
        text = "\n".join(map(glyphs.to_ascii, lines) if self.options.ascii else lines)
        lasts_s = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        self.post_message(Notify(Notice(text, visible(title), severity, lasts_s, markup=False)))

    def _complain(self, text: str) -> None:
        self.post_message(self.Trouble(text))

    def on_kev_app_trouble(self, message: Trouble) -> None:
        self.notify(message.text, severity="warning", timeout=10)

    def _open_beside(self) -> None:
        if self._beside and isinstance(self._watch, WatchScreen) and self._watch.snapshot is not None:
            from kevtui.screens.beside import open_beside

            open_beside(self._watch, self._beside)
            self._beside = None

    def on_kev_app_source_failed(self, message: SourceFailed) -> None:
        message.tab.failure = message.error
        if all(tab.failure is not None for tab in self._tabs):
            self.failure = message.error
            self.exit(1, return_code=1)
        else:
            words = visible(f"{message.tab.title}: {message.error}")
            self.notify(f"{words}; its tab shows what was seen last", severity="error", markup=False, timeout=10)
            self._tell_tabs()

    def on_app_focus(self) -> None:
        for tab in self._tabs:
            tab.feed.slow_down(False)

    def on_app_blur(self) -> None:
        for tab in self._tabs:
            tab.feed.slow_down(True)

    def forget_shown(self) -> None:
        for tab in self._tabs:
            tab.screen.forget_shown()

    # ------------------------------------------------------------------------------ several sessions

    def _start_others(self) -> None:
        """Hear of the other sessions, once the one that is looked at has been seen."""
        for tab in self._tabs:
            if tab is not self._here and not tab.started:
                tab.feed.rest(True)
                tab.start()

    def _tell_tabs(self) -> None:
        if len(self._tabs) > 1:
            self._watch.tell_tabs([tab.mark(here=tab is self._here) for tab in self._tabs])

    def on_watch_screen_tab_changed(self) -> None:
        self._tell_tabs()

    async def on_tab_line_chosen(self, message: TabLine.Chosen) -> None:
        await self.action_tab(message.number)

    async def action_tab(self, number: int) -> None:
        """Look at the session of a tab; the others go on, and ask for next to nothing."""
        tab = self._tabs[number]
        if tab is self._here or len(self.screen_stack) > 1:
            return
        before, self._here = self._here, tab
        before.keep_layout()
        before.leave()
        await self.switch_mode(f"tab {number}")
        if not tab.started:
            tab.start()
        tab.look_here()
        self._tell_tabs()

    async def action_next_tab(self, step: int) -> None:
        await self.action_tab((self._tabs.index(self._here) + step) % len(self._tabs))

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        # The one place where a frame can be changed between compositor and driver.
        exact = None if renderable is None or self._batch_count else self._rows.exact(renderable, self.size)
        super()._display(screen, exact or renderable)

    def on_resize(self) -> None:
        # Terminals rearrange what they show when their size changes.
        self._rows.forget()

    def copy_to_clipboard(self, text: str) -> None:
        """`text`, made safe to paste, to the clipboard of whoever looks at the terminal."""
        from kevtui import clipboard

        self._clipboard = clipboard.cut(clipboard.safe(text))
        if self._driver is not None:
            self._driver.write(clipboard.sequence(self._clipboard, os.environ))

    def action_redraw(self) -> None:
        """Everything again, for a terminal that something else has written on."""
        self._rows.forget()
        self.refresh(layout=True)


def run(open_source: Callable[[], SnapshotSource], *, title: str, options: Options = PLAIN) -> int:
    """Show the dashboard until the user leaves; the exit code. What the source raised is raised again, after it."""
    return run_app(KevApp(open_source, title=title, options=options))


def run_app(app: KevApp) -> int:
    """Run `app` until the user leaves; the exit code. What its source raised is raised again, after it."""
    over_ssh = bool(os.environ.get("SSH_TTY") or os.environ.get("SSH_CONNECTION"))
    options = app.options
    code = lifecycle.run(app, mouse=not over_ssh if options.mouse is None else options.mouse)
    if app.failure is not None:
        raise app.failure
    return code
