"""Each verb where it may be done: what a checkout must hold for it, how its key is found, and what it asks for."""

from collections.abc import Callable
from dataclasses import dataclass

from acting_app import Acting
from action_lab import DELTA, FULL, ActionLab

from kevtui.keymap import BINDINGS, Binding
from kevtui.screens.fields import FieldsScreen


def nothing(lab: ActionLab) -> None:
    """The round is registered and nothing of it was launched."""


def launched(lab: ActionLab) -> None:
    lab.start(FULL)
    lab.start(DELTA)


def stage_is_read(lab: ActionLab) -> None:
    lab.choose("2b-full")
    lab.land("r201c-2b-cand-streettest", "r201c-2b-parent-streettest")


@dataclass(frozen=True)
class ReadyVerb:
    """One binding that acts, where everything that it asks for is met."""

    id: str
    """Of the binding."""
    command: str
    """The first word of what the engine is asked for."""
    prepare: Callable[[ActionLab], object] = nothing
    fields: tuple[str, ...] | None = None
    """What is filled in before there is a dialog."""
    typed: str = ""
    """The name that confirms it."""

    @property
    def binding(self) -> Binding:
        return next(binding for binding in BINDINGS if binding.id == self.id)

    async def reach(self, it: Acting) -> str:
        """Do everything but the last key that begins it, and return that key."""
        if self.binding.keys:
            return self.binding.keys[0]
        await it.press("ctrl+p")
        await it.until_shown("a command; enter runs it")
        await it.type(self.binding.verb)
        return "enter"

    async def fill(self, it: Acting) -> None:
        """Fill in what is asked for before the dialog, if anything is."""
        if self.fields is None:
            return
        await it.until(lambda: isinstance(it.app.screen, FieldsScreen), "the fields")
        for value in self.fields:
            await it.type(value)
            await it.press("enter")

    async def name(self, it: Acting) -> None:
        """Type the name that the dialog asks for, if it asks for one."""
        if self.typed:
            await it.press("tab")
            await it.type(self.typed)
            await it.press("enter")
            await it.until_shown("The name is right")


READY = (
    ReadyVerb("launch", "launch", typed="r201"),
    ReadyVerb("watch", "watch", launched),
    ReadyVerb("reads", "launch-reads"),
    ReadyVerb("resume", "resume", lambda lab: lab.start(FULL, outcome="timed_out"), typed="r201-full"),
    ReadyVerb("confirm", "confirm", stage_is_read, typed="tests"),
    ReadyVerb("cancel", "cancel", lambda lab: lab.start(FULL), fields=("",), typed="r201-full"),
    ReadyVerb("unpause", "unpause", lambda lab: lab.pause()),
    ReadyVerb("deploy", "deploy"),
    ReadyVerb("stage_reads", "launch-reads", lambda lab: lab.choose("2b-full"), typed="2b-full"),
    ReadyVerb("mirror", "run", lambda lab: lab.start(FULL)),
    ReadyVerb("open", "open", fields=("dusk", "90"), typed="dusk"),
    ReadyVerb("close", "close", typed="night"),
    ReadyVerb("pull", "pull", lambda lab: lab.start(FULL)),
    ReadyVerb("numbers", "readout"),
    ReadyVerb("validate", "validate"),
    ReadyVerb("refresh", "refresh"),
    ReadyVerb("pause", "pause"),
)
