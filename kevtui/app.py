"""The dashboard: a screen over a stream of Snapshots.

Until the first frame nothing but Textual and the standard library is imported: the source, with all that reads and
checks files, is opened by a thread after it.
"""

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rich.console import RenderableType
from textual import events
from textual.app import App
from textual.message import Message
from textual.screen import Screen

from kevtui import lifecycle, themes
from kevtui.columns import EVERY
from kevtui.deliberate import QUIET_S, SETTLE_S, Typing
from kevtui.exact_update import TerminalRows
from kevtui.feed import Feed, SnapshotSource
from kevtui.keymap import BINDINGS, Binding, looking, of_live, of_replay
from kevtui.observe.snapshot import Snapshot
from kevtui.screens.panels import PanelsScreen
from kevtui.screens.watch import WatchScreen
from kevtui.theme_watch import ThemeWatch
from kevtui.widgets.ink import Ink

if TYPE_CHECKING:
    from kevtui.actions.sight import Eyes
    from kevtui.replay.look_back import Past

__all__ = ["KevApp", "Options", "SnapshotSource", "run"]


@dataclass(frozen=True, slots=True)
class Options:
    """How the screen should look. `mouse` None: on, except over SSH, where every move of the pointer is bytes."""

    theme: str | None = None
    ascii: bool = False
    mouse: bool | None = None
    panel: str | None = None
    beside: str | None = None
    """A session or round whose read-out is shown beside this one's, once both are there."""
    bindings: tuple[Binding, ...] = BINDINGS
    columns: tuple[str, ...] = EVERY
    """Ids of the columns of the studies."""
    open_eyes: "Callable[[], Eyes] | None" = None
    """Opens what looks at the session's actions, and may act; called by a thread, after the first Snapshot."""
    look: Callable[[str, Path], Snapshot] | None = None
    """Takes one Snapshot of another session or round, to compare with; raises KevError. Called by a thread."""
    may_act: bool = False
    """Whether the keys that change something are there at all."""
    command_player: Callable[[str], None] | None = None
    """Where the keys of a replay go; None where a session is watched."""
    open_past: "Callable[[], Past] | None" = None
    """Opens the past of the session that is watched; None where it has none to look back at."""
    quiet_s: float = QUIET_S
    settle_s: float = SETTLE_S
    """How deliberate a key must be; see kevtui.deliberate."""


class KevApp(App[int]):
    """Shows what `open_source` yields until it is told to quit."""

    CSS_PATH = Path(__file__).parent / "look.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = []  # noqa: RUF012  the one table has them all

    class Arrived(Message):
        """A Snapshot was taken."""

        def __init__(self, snapshot: Any) -> None:
            self.snapshot = snapshot
            super().__init__()

    class SourceFailed(Message):
        """The source raised; nothing more will come."""

        def __init__(self, error: Exception) -> None:
            self.error = error
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
        options: Options = Options(),
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
        self._of_past = of_replay(options.bindings, comes_back=has_past)
        is_live = options.command_player is None
        table = of_live(options.bindings, looks_back=has_past) if is_live else self._of_past
        self.bindings_table = table if options.may_act else looking(table)
        there = {binding.id: binding for binding in (*self.bindings_table, *(self._of_past if has_past else ()))}
        for binding in there.values():
            if binding.keys:
                self.bind(",".join(binding.keys), binding.action, description=binding.verb, show=False)
        self._use(self._palette)
        self._watch = self.make_screen(title)
        self._feed = Feed(open_source, self._deliver, self._fail)
        self._theme_watch: ThemeWatch | None = None
        self.failure: Exception | None = None

    def make_screen(self, title: str) -> PanelsScreen[Any]:
        """The one screen that stays: it shows every Snapshot."""
        options = self.options
        screen = WatchScreen(
            self.ink, self.bindings_table, title=title, panel=options.panel, typing=self.typing,
            open_eyes=options.open_eyes, of_past=self._of_past, columns=options.columns,
        )  # fmt: skip
        screen.look, screen.open_past, screen.command_player = options.look, options.open_past, options.command_player
        return screen

    def get_default_screen(self) -> Screen[Any]:
        return self._watch

    def on_mount(self) -> None:
        self.call_after_refresh(self._feed.start)
        self.call_after_refresh(self._watch_theme_file)
        if self._complaint:
            self.notify(self._complaint, severity="warning", markup=False)

    def on_unmount(self) -> None:
        self._feed.stop()
        if self._theme_watch is not None:
            self._theme_watch.stop()

    async def on_event(self, event: events.Event) -> None:
        # Here every key passes on its way to whatever has the focus, with the moment at which it was read.
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self.typing.pressed(event.time)
        await super().on_event(event)

    # ------------------------------------------------------------------------------ Snapshots

    def _deliver(self, snapshot: Any) -> None:
        self.post_message(self.Arrived(snapshot))

    def _fail(self, error: Exception) -> None:
        self.post_message(self.SourceFailed(error))

    def on_kev_app_arrived(self, message: Arrived) -> None:
        # One that arrives while the screen is being taken down would find no panels.
        if self.is_running:
            self._watch.show(message.snapshot)
            if self._beside and isinstance(self._watch, WatchScreen):
                from kevtui.screens.beside import open_beside

                open_beside(self._watch, self._beside)
                self._beside = None
        if not gc.isenabled():
            # What is there now stays: searching it for garbage over and over would cost more than watching it.
            gc.collect()
            gc.freeze()
            gc.enable()

    def on_kev_app_source_failed(self, message: SourceFailed) -> None:
        self.failure = message.error
        self.exit(1, return_code=1)

    def on_app_focus(self) -> None:
        self._feed.slow_down(False)

    def on_app_blur(self) -> None:
        self._feed.slow_down(True)

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
        self._watch.forget_shown()

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


def run(open_source: Callable[[], SnapshotSource], *, title: str, options: Options = Options()) -> int:
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
