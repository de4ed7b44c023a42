"""An app in the colours of a theme, which can be changed, and whose file can be written, while it runs."""

import os

from textual.app import App
from textual.message import Message

from kevtui import themes
from kevtui.theme_watch import ThemeWatch
from kevtui.widgets.ink import Ink


class ThemedApp(App[int]):
    """Subclasses say with `forget_shown` what is to be painted again in other colours."""

    class ThemeWritten(Message):
        """The file of the theme in use was written: `palette` is what it holds now, None where that is no theme."""

        def __init__(self, palette: themes.Palette | None, trouble: str = "") -> None:
            self.palette = palette
            self.trouble = trouble
            super().__init__()

    def __init__(self, *, theme: str | None, ascii_only: bool) -> None:
        without_colour = "NO_COLOR" in os.environ
        # Textual turns colours to greys unless it is told that the theme is the terminal's own.
        super().__init__(ansi_color=True if without_colour else None)
        self._complaint = ""
        self._palette = self._first_palette(themes.WITHOUT_COLOUR if without_colour else theme)
        self._theme_watch: ThemeWatch | None = None
        self.ink = Ink(self._palette, ascii_only=ascii_only)
        self._use(self._palette)

    def forget_shown(self) -> None:
        """Paint everything again."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self.call_after_refresh(self._watch_theme_file)
        if self._complaint:
            self.notify(self._complaint, severity="warning", markup=False)

    def on_unmount(self) -> None:
        if self._theme_watch is not None:
            self._theme_watch.stop()

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
        self.forget_shown()

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

    def on_themed_app_theme_written(self, message: ThemeWritten) -> None:
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
