"""Agreeing to an action, deliberately: what it would do, and a key that no held key and no paste can stand for.

The focus rests on Cancel, and enter there cancels. What is above a threshold or can be done once only is confirmed by
typing its name first.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any, ClassVar

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from kev.text import visible
from kevtui.deliberate import Typing
from kevtui.glyphs import to_ascii
from kevtui.screens.action_text import body, confirm_words
from kevtui.screens.over import OverScreen
from kevtui.widgets.ink import Ink
from kevtui.widgets.line import Role

BESIDE_BODY = 8
"""Lines of the dialog that are not its body: the frame, the name, and up to four of remarks and keys."""

CHECKING = "checking, by a fresh read ..."


@dataclass(frozen=True, slots=True)
class Agreed:
    """What somebody agreed to: the report that was shown, and the name that was typed."""

    report: dict[str, Any]
    name: str = ""


class TypedName(Input):
    """A name that is typed. A paste does not count: it can come by accident, and from elsewhere."""

    class Pasted(Message):
        """Something was pasted."""

    def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self.post_message(self.Pasted())

    def action_paste(self) -> None:
        self.post_message(self.Pasted())


class Cancel(Static, can_focus=True):
    """The keys of the dialog; the first of them has the focus."""


class ActionDialog(OverScreen[Agreed | None]):
    """Dismissed with what was agreed to, or None."""

    DEFAULT_CSS = """
    ActionDialog { align: center middle; }
    ActionDialog > Vertical {
        width: 90%; max-width: 110; height: auto; max-height: 96%; padding: 0 1;
        background: $kev-background; color: $kev-text; border: round $kev-accent; border-title-color: $kev-accent;
    }
    ActionDialog.danger > Vertical { border: round $kev-bad; border-title-color: $kev-bad; }
    ActionDialog.ascii > Vertical { border: ascii $kev-accent; }
    ActionDialog.ascii.danger > Vertical { border: ascii $kev-bad; }
    ActionDialog VerticalScroll { height: auto; scrollbar-size-vertical: 0; }
    ActionDialog TypedName, ActionDialog TypedName:focus {
        height: 1; border: none; padding: 0 1; background: $kev-cursor; color: $kev-text; margin: 0;
    }
    ActionDialog Cancel { height: auto; margin-top: 1; }
    """
    AUTO_FOCUS = "Cancel"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", show=False, priority=True),
        Binding("n", "cancel", show=False),
        Binding("enter", "cancel", show=False),
        Binding("y", "confirm", show=False),
        Binding("r", "look_again", show=False),
        Binding("tab,shift+tab", "to_the_name", show=False, priority=True),
        Binding("up", "scroll(-1)", show=False, priority=True),
        Binding("down", "scroll(1)", show=False, priority=True),
        Binding("pageup", "scroll(-10)", show=False, priority=True),
        Binding("pagedown", "scroll(10)", show=False, priority=True),
    ]

    def __init__(
        self,
        title: str,
        propose: Callable[[], Awaitable[dict[str, Any]]],
        typing: Typing,
        ink: Ink,
        *,
        danger: bool,
        report: dict[str, Any] | None = None,
    ) -> None:
        classes = [*(["ascii"] if ink.ascii_only else []), *(["danger"] if danger else [])]
        super().__init__(classes=" ".join(classes))
        self._title_text = title
        self._propose = propose
        self._typing = typing
        self._ink = ink
        self._report = report
        self._painted_at = float("inf")
        self._named = False
        self._remark = ""

    # ------------------------------------------------------------------------------------------------------ content

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(self._safe(self._title_text))
            with VerticalScroll(can_focus=False):
                yield Static(self._body(), id="act-body", markup=False)
            yield TypedName(id="act-name")
            yield Cancel(self._keys(), markup=False)

    def on_mount(self) -> None:
        self.query_one(TypedName).display = False
        self.query_one(TypedName).cursor_blink = False
        if self._report is None:
            self.action_look_again()
        else:
            self._show(self._report)

    def on_resize(self) -> None:
        # However long the checklist is, the keys under it stay in sight.
        self.query_one(VerticalScroll).styles.max_height = max(1, self.size.height - BESIDE_BODY)
        self.call_after_refresh(self._show_keys)

    def action_look_again(self) -> None:
        """Check everything anew."""
        self._report, self._painted_at, self._named, self._remark = None, float("inf"), False, ""
        self._repaint()
        self.run_worker(self._look(), exclusive=True)

    async def _look(self) -> None:
        try:
            report = await self._propose()
        except OSError as error:
            report = {"text": f"cannot be checked: {error.strerror or error}"}
        self._show(report)

    def _show(self, report: dict[str, Any]) -> None:
        self._report = report
        name = self.query_one(TypedName)
        name.display = bool(self._typed and report.get("ready"))
        name.placeholder = f"type {self._safe(self._typed)}" if self._typed else ""
        self._repaint()
        # Only a key that comes after all of this was painted can mean it.
        self.call_after_refresh(self._note_painted)

    def _note_painted(self) -> None:
        # Only now is it known whether the body has room.
        self._show_keys()
        self._painted_at = monotonic()

    def _repaint(self) -> None:
        self.query_one("#act-body", Static).update(self._body())
        self._show_keys()

    def _show_keys(self) -> None:
        self.query_one(Cancel).update(self._keys())

    def _body(self) -> Text:
        if self._report is None:
            return Text(CHECKING, style=self._ink.styles[Role.DIM])
        return body(self._report, self._ink)

    def _keys(self) -> Text:
        text = Text()
        if self._remark:
            text.append(f"{self._safe(self._remark)}\n", style="bold")
        # Over the cancelling of a trial, "Cancel" could mean either.
        text.append(" Keep it " if (self._report or {}).get("verb") == "cancel" else " Cancel ", style="reverse")
        text.append(" enter, esc or n")
        if self.is_mounted and self.query_one(VerticalScroll).max_scroll_y > 0:
            text.append("    " + self._safe("↑↓ more"))
        if self._ready and self._typed and not self._named:
            text.append(f"    tab, then type {self._safe(self._typed)} and press enter")
        elif self._ready:
            text.append("    y", style="bold")
            text.append(f" {self._safe(confirm_words(self._report or {}))}")
        elif self._report is not None:
            text.append("    r look again")
        return text

    @property
    def _ready(self) -> bool:
        return bool(self._report and self._report.get("ready"))

    @property
    def _typed(self) -> str:
        return str((self._report or {}).get("type_to_confirm") or "")

    def _safe(self, text: str) -> str:
        return to_ascii(visible(text)) if self._ink.ascii_only else visible(text)

    def _say(self, remark: str) -> None:
        self._remark = remark
        self._show_keys()

    # --------------------------------------------------------------------------------------------------------- keys

    def action_cancel(self) -> None:
        self.dismiss(None)

    def action_scroll(self, rows: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=rows, animate=False)

    def action_to_the_name(self) -> None:
        name = self.query_one(TypedName)
        # At once: with `focus()` the next letter could still go where the focus was.
        self.set_focus(self.query_one(Cancel) if name.has_focus or not name.display else name)

    @on(Input.Submitted)
    def _check_name(self, event: Input.Submitted) -> None:
        event.stop()
        self._named = event.value == self._typed
        if self._named:
            self.query_one(TypedName).display = False
            self.set_focus(self.query_one(Cancel))
            self._say("The name is right. Nothing has happened yet.")
        else:
            self._say(f"That is not {self._typed}.")

    @on(TypedName.Pasted)
    def _refuse_paste(self) -> None:
        self._say("A paste does not count: type it.")

    def action_confirm(self) -> None:
        """Agree, if the key is one that was meant, and if no other one follows it at once."""
        if not self._ready or (self._typed and not self._named):
            return
        if not self._typing.is_fresh(self._painted_at):
            self._say("That key came with others, or too early: nothing was done.")
            return
        count = self._typing.count
        self.set_timer(self._typing.settle_s, lambda: self._settle(count))

    def _settle(self, count: int) -> None:
        if self._typing.count != count:
            self._say("Other keys came right after that one: nothing was done.")
        elif self.is_current and self._report is not None and self._ready:
            self.dismiss(Agreed(self._report, self._typed if self._named else ""))
