"""The dashboard: a screen over a stream of Snapshots.

Until the first frame nothing but Textual and the standard library is imported: the source, with all that reads and
checks files, is opened by a thread after it.
"""

import gc
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rich.console import RenderableType
from textual import events
from textual.app import App
from textual.message import Message
from textual.notifications import SeverityLevel
from textual.screen import Screen

from kev.text import visible
from kevtui import glyphs, lifecycle, themes
from kevtui.deliberate import Typing
from kevtui.exact_update import TerminalRows
from kevtui.feed import Feed, SnapshotSource
from kevtui.keymap import looking, of_live, of_one, of_replay
from kevtui.options import PLAIN, Options
from kevtui.screens.panels import PanelsScreen
from kevtui.screens.watch import WatchScreen
from kevtui.tabs import Tab, Watched
from kevtui.theme_watch import ThemeWatch
from kevtui.widgets.ink import Ink
from kevtui.widgets.tab_line import Mark

if TYPE_CHECKING:
    from kevtui.alerting.desk import AlertDesk

__all__ = ["KevApp", "Options", "SnapshotSource", "run"]


class KevApp(App[int]):
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

    class ThemeWritten(Message):
        """The file of the theme in use was written: `palette` is what it holds now, None where that is no theme."""

        def __init__(self, palette: themes.Palette | None, trouble: str = "") -> None:
            self.palette = palette
            self.trouble = trouble
            super().__init__()

    def __init__(
        self,
        open_source: Callable[[], SnapshotSource[Any]],
        *,
        title: str,
        options: Options = PLAIN,
    ) -> None:
        self._rows = TerminalRows()
        without_colour = "NO_COLOR" in os.environ
        # Textual turns colours to greys unless it is told that the theme is the terminal's own.
        super().__init__(ansi_color=True if without_colour else None)
        self.title = title
        self.animation_level = "none"
        self.options = options
        self._complaint = ""
        self._beside = options.beside
        self._palette = self._first_palette(themes.WITHOUT_COLOUR if without_colour else options.theme)
        self.ink = Ink(self._palette, ascii_only=options.ascii)
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
        self._use(self._palette)
        self._sessions = [
            Watched(title, open_source, options.open_eyes, options.open_past, options.may_act),
            *options.more,
        ]
        self._tabs = [Tab(title, self.make_screen(title))]
        self._tabs += [Tab(other.title, self._screen_of(other)) for other in options.more]
        for session, tab in zip(self._sessions, self._tabs, strict=True):
            tab.feed = Feed(session.open_source, partial(self._deliver, tab), partial(self._fail, tab))
        for number, tab in enumerate(self._tabs):
            self.add_mode(f"tab {number}", tab.get_screen)
        self._here = self._tabs[0]
        self._theme_watch: ThemeWatch | None = None
        self.failure: Exception | None = None

    def make_screen(self, title: str) -> PanelsScreen[Any]:  # noqa: ARG002
        """The screen that is there from the start: it shows every Snapshot."""
        screen = self._screen_of(self._sessions[0])
        screen.zoomed = self.options.panel
        return screen

    def _screen_of(self, session: Watched) -> WatchScreen:
        bindings = self.bindings_table if session.may_act else looking(self.bindings_table)
        several = len(self._sessions) > 1
        screen = WatchScreen(
            self.ink, bindings, title=session.title, typing=self.typing, open_eyes=session.open_eyes,
            of_past=self._of_past, columns=self.options.columns,
            tabs=[Mark(each.title) for each in self._sessions] if several else (),
        )  # fmt: skip
        screen.look, screen.open_past = self.options.look, session.open_past
        screen.command_player = self.options.command_player
        return screen

    def on_mount(self) -> None:
        self.call_after_refresh(self._feed.start)
        self.call_after_refresh(self._watch_theme_file)
        if self._complaint:
            self.notify(self._complaint, severity="warning", markup=False)

    def on_unmount(self) -> None:
        for tab in self._tabs:
            tab.close()
        if self._theme_watch is not None:
            self._theme_watch.stop()

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
        await super().on_event(event)

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
            # What is there now stays: searching it for garbage over and over would cost more than watching it.
            gc.collect()
            gc.freeze()
            gc.enable()
        self._start_others()

    def _take(self, tab: Tab, snapshot: Any) -> None:
        screen = tab.screen
        if isinstance(screen, WatchScreen) and self.options.command_player is None and screen.desk is None:
            screen.desk = self._open_desk()
        tab.arrived(snapshot, here=tab is self._here)
        if isinstance(screen, WatchScreen) and screen.desk is not None:
            screen.desk.take(tab.snapshot, screen.writer)

    def _open_desk(self) -> "AlertDesk":
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
        super().notify(text, title=visible(title), severity=severity, timeout=timeout, markup=False)

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

    async def action_tab(self, number: int) -> None:
        """Look at the session of a tab; the others go on, and ask for next to nothing."""
        tab = self._tabs[number]
        if tab is self._here or len(self.screen_stack) > 1:
            return
        before, self._here = self._here, tab
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

    def refresh(self, *, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """Everything again, whatever the terminal is believed to show."""
        self._rows.forget()
        return super().refresh(repaint=repaint, layout=layout, recompose=recompose)

    def on_resize(self) -> None:
        # Terminals rearrange what they show when their size changes.
        self._rows.forget()

    def copy_to_clipboard(self, text: str) -> None:
        """`text`, made safe to paste, to the clipboard of whoever looks at the terminal."""
        from kevtui import clipboard

        self._clipboard = clipboard.cut(clipboard.safe(text))
        if self._driver is not None:
            self._driver.write(clipboard.sequence(self._clipboard, os.environ))

    # ------------------------------------------------------------------------------ themes

    def _first_palette(self, name: str | None) -> themes.Palette:
        try:
            return themes.load(name or themes.DEFAULT)
        except themes.BadTheme as error:
            self._complaint = str(error)
            return themes.load(themes.DEFAULT, [themes.directories()[-1]])

    def _use(self, palette: themes.Palette) -> None:
        self._palette = palette
        theme = palette.as_textual()
        if theme.name == self.theme:
            # Textual takes other colours only under another name.
            theme.name += "-again"
        self.register_theme(theme)
        self.theme = theme.name

    def _wear(self, palette: themes.Palette) -> None:
        self.ink.use(palette)
        self._use(palette)
        for tab in self._tabs:
            tab.screen.forget_shown()

    def action_use_theme(self, name: str) -> None:
        try:
            palette = themes.load(name)
        except themes.BadTheme as error:
            self.notify(str(error), severity="warning", markup=False)
            return
        self._wear(palette)
        if self._theme_watch is not None:
            self._theme_watch.follow(palette)

    def _watch_theme_file(self) -> None:
        """Follow the theme's file where the user has themes; those of the package do not change."""
        if not themes.directories()[0].is_dir():
            return
        self._theme_watch = ThemeWatch(
            self._palette,
            lambda palette: self.post_message(self.ThemeWritten(palette)),
            lambda trouble: self.post_message(self.ThemeWritten(None, trouble)),
        )
        self._theme_watch.start()

    def on_kev_app_theme_written(self, message: ThemeWritten) -> None:
        if message.palette is None:
            self.notify(message.trouble, severity="warning", markup=False)
        elif message.palette.name == self._palette.name:
            self._wear(message.palette)

    def action_next_theme(self) -> None:
        names = themes.names()
        here = names.index(self._palette.name) if self._palette.name in names else -1
        for step in range(1, len(names) + 1):
            name = names[(here + step) % len(names)]
            try:
                palette = themes.load(name)
            except themes.BadTheme as error:
                self.notify(str(error), severity="warning", markup=False)
                continue
            self.action_use_theme(palette.name)
            self.notify(palette.label, markup=False, timeout=2)
            return

    def action_redraw(self) -> None:
        """Everything again, for a terminal that something else has written on."""
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
