"""The one table of key bindings: the keys, the footer, the help, the palette and the README all come from it.

A verb that spends or destroys has `danger` set and sits on a capital letter, never beside another one on a keyboard;
`acts` marks everything that changes something, and is gone where nothing may be changed. What has no key is in the
palette.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace


class BadKeymap(ValueError):
    """A remapping that cannot be meant; `str()` of it is one line that names the ids."""


@dataclass(frozen=True, slots=True)
class Binding:
    id: str
    keys: tuple[str, ...]
    """As Textual names keys: "question_mark", "ctrl+p"."""
    verb: str
    """One word or two, for the footer and the palette."""
    text: str
    """What it does, for the help."""
    action: str
    group: str
    danger: bool = False
    footer: bool = False
    acts: bool = False
    """Changes something: not there where nothing may be changed."""
    replays: bool = False
    """Moves about in a night that is replayed: not there elsewhere."""

    @property
    def label(self) -> str:
        return " ".join(readable(key) for key in self.keys)


PANELS = "Panels"
WITHIN = "In a panel"
LOOKS = "Screen"
ACTS = "Actions"
REPLAY = "Replay"


def _act(
    verb: str,
    keys: str,
    words: str,
    text: str,
    *,
    name: str = "",
    danger: bool = False,
    footer: bool = False,
) -> Binding:
    return Binding(
        name or verb,
        tuple(keys.split()),
        words,
        text,
        f"screen.act('{verb}')",
        ACTS,
        danger=danger,
        footer=footer,
        acts=True,
    )


def _play(id: str, keys: str, verb: str, text: str, command: str, *, footer: bool = False) -> Binding:  # noqa: A002
    return Binding(
        id, tuple(keys.split()), verb, text, f"screen.replay('{command}')", REPLAY, footer=footer, replays=True
    )


BINDINGS: tuple[Binding, ...] = (
    Binding("details", ("enter",), "details", "Everything known of the row under the cursor, to read and copy",
            "screen.details", WITHIN, footer=True),
    Binding("log", ("l",), "log", "The log of the trial under the cursor, from its end", "screen.log", WITHIN,
            footer=True),
    Binding("filter", ("slash",), "filter", "Show the trials that hold every word; !word leaves out",
            "screen.filter", WITHIN, footer=True),
    Binding("sort", ("s",), "sort", "Sort the trials by the next column", "screen.sort", WITHIN, footer=True),
    Binding("columns", ("v",), "columns", "Choose the columns of the studies and their order", "screen.columns",
            WITHIN),
    Binding("zoom", ("z",), "zoom", "Give the focused panel the whole screen, or back", "screen.zoom", PANELS,
            footer=True),
    Binding("next_panel", ("tab",), "next", "Go to the next panel", "screen.next_panel(1)", PANELS, footer=True),
    Binding("previous_panel", ("shift+tab",), "previous", "Go to the panel before", "screen.next_panel(-1)", PANELS),
    Binding("readout", ("o",), "read-out", "Show the read-out alone", "screen.only('readout')", PANELS, footer=True),
    Binding("events", ("e",), "events", "Show the events alone", "screen.only('events')", PANELS, footer=True),
    Binding("beside", ("d",), "differences", "Compare the read-out with that of another round, side by side",
            "screen.beside", PANELS),
    Binding("panel_1", ("1",), "studies", "Go to the studies", "screen.jump('studies')", PANELS),
    Binding("panel_2", ("2",), "money", "Go to the money", "screen.jump('money')", PANELS),
    Binding("panel_3", ("3",), "reads", "Go to the reads", "screen.jump('reads')", PANELS),
    Binding("panel_4", ("4",), "read-out", "Go to the read-out", "screen.jump('readout')", PANELS),
    Binding("panel_5", ("5",), "verdicts", "Go to the verdicts", "screen.jump('verdicts')", PANELS),
    Binding("panel_6", ("6",), "events", "Go to the events", "screen.jump('events')", PANELS),
    Binding("panel_7", ("7",), "leases", "Go to the leases", "screen.jump('leases')", PANELS),
    Binding("panel_8", ("8",), "attention", "Go to what needs attention", "screen.jump('attention')", PANELS),
    Binding("panel_9", ("9",), "plot", "Go to the curves of the trial; below 150 columns they take the screen",
            "screen.jump('plot')", PANELS),
    Binding("acknowledge", ("exclamation_mark",), "acknowledge",
            "Go to the alerts; there, acknowledge the one under the cursor until it changes", "screen.acknowledge",
            WITHIN),
    Binding("acknowledge_all", (), "acknowledge all", "Acknowledge every alert until it changes",
            "screen.acknowledge_all", WITHIN),
    Binding("unacknowledge", (), "show acknowledged", "Show again every alert that was acknowledged",
            "screen.unacknowledge", WITHIN),
    Binding("up", ("up", "k"), "up", "One row up", "screen.move(-1)", WITHIN),
    Binding("down", ("down", "j"), "down", "One row down", "screen.move(1)", WITHIN),
    Binding("page_up", ("pageup",), "page up", "One page up", "screen.page(-1)", WITHIN),
    Binding("page_down", ("pagedown",), "page down", "One page down", "screen.page(1)", WITHIN),
    Binding("first", ("home", "g"), "first", "To the first row", "screen.move(-1000000)", WITHIN),
    Binding("last", ("end",), "last", "To the last row", "screen.move(1000000)", WITHIN),
    Binding("copy", ("y",), "copy", "Copy the row under the cursor to your clipboard", "screen.copy",
            WITHIN),
    Binding("copy_cell", ("i",), "copy cell", "Choose a cell of the row, or a command about it, and copy that",
            "screen.copy_cell", WITHIN),
    Binding("back", ("escape",), "back", "Leave log, filter or zoom, one after the other", "screen.back", PANELS),
    _act("pull", "p", "pull", "Bring home what the study under the cursor has written", footer=True),
    _act("readout", "n", "numbers", "Compute the read-out from the rows that are here", name="numbers"),
    _act("validate", "c", "check", "Say everything that is wrong with the round's spec"),
    _act("refresh", "b", "billing", "Read the meter"),
    _act("pause", "h", "hold", "Start nothing new until it is lifted; what runs goes on"),
    Binding("take_back", ("u",), "take back", "Take back what was just confirmed, while it waits", "screen.take_back",
            ACTS, acts=True),
    Binding("control", ("a",), "control", "Ask for control of the session, or give it to who asks", "screen.control",
            ACTS, acts=True),
    _act("launch", "L", "launch", "Start the studies of the round that are missing", danger=True, footer=True),
    _act("watch", "W", "watch", "Start the watcher of the round", danger=True),
    _act("reads", "M", "measure", "Start the reads that arms still need", danger=True),
    _act("resume", "R", "resume", "Continue the trial under the cursor, which a timeout ended", danger=True,
         footer=True),
    _act("confirm", "V", "verdict", "Decide the next stage for the candidate, once", danger=True, footer=True),
    _act("cancel", "X", "cancel", "End the trial under the cursor, on record", danger=True, footer=True),
    _act("unpause", "", "go on", "Let the session start new work again", danger=True),
    _act("deploy", "", "deploy", "Put these sources where the round runs", danger=True),
    _act("stage_reads", "", "stage reads", "Start the reads of the next stage, each of them once", danger=True),
    _act("mirror", "", "mirror", "List what of the study could be uploaded; asked again, upload it", danger=True),
    _act("open", "", "open session", "Say what a new session may spend", danger=True),
    _act("close", "", "close session", "End the session: nothing more starts in it", danger=True),
    Binding("replay", ("backspace",), "look back", "Look at an earlier moment of this session, or come back to now",
            "screen.look_back", REPLAY),
    _play("replay_pause", "space", "pause", "In a replay: stop, or go on", "pause", footer=True),
    _play("replay_event", "right", "event", "In a replay: to the next event", "event", footer=True),
    _play("replay_event_back", "left", "event before", "In a replay: to the event before", "event_back"),
    _play("replay_incident", "right_square_bracket", "incident", "In a replay: to the next incident", "incident",
          footer=True),
    _play("replay_incident_back", "left_square_bracket", "incident before", "In a replay: to the incident before",
          "incident_back"),
    _play("replay_faster", "plus", "faster", "In a replay: faster, up to 1000 times", "faster"),
    _play("replay_slower", "minus", "slower", "In a replay: slower", "slower"),
    _play("replay_forward", "full_stop", "10 min on", "In a replay: ten minutes on", "scrub 600"),
    _play("replay_back", "comma", "10 min back", "In a replay: ten minutes back", "scrub -600"),
    _play("replay_hour", "greater_than_sign", "an hour on", "In a replay: an hour on", "scrub 3600"),
    _play("replay_hour_back", "less_than_sign", "an hour back", "In a replay: an hour back", "scrub -3600"),
    Binding("next_tab", ("right_curly_bracket",), "next session", "Where several are open: look at the next session",
            "app.next_tab(1)", LOOKS),
    Binding("previous_tab", ("left_curly_bracket",), "session before", "Where several are open: look at the one before",
            "app.next_tab(-1)", LOOKS),
    Binding("theme", ("t",), "theme", "The next colour theme", "app.next_theme", LOOKS),
    Binding("redraw", ("ctrl+l",), "redraw", "Paint the whole screen again", "app.redraw", LOOKS),
    Binding("help", ("question_mark",), "help", "All keys", "screen.help", LOOKS, footer=True),
    Binding("palette", ("ctrl+p",), "palette", "Find a command by its name", "screen.palette", LOOKS, footer=True),
    Binding("quit", ("q",), "quit", "Leave; nothing that is watched notices", "app.quit", LOOKS, footer=True),
)  # fmt: skip

_SIGNS = {
    "slash": "/",
    "exclamation_mark": "!",
    "question_mark": "?",
    "escape": "esc",
    "pageup": "page up",
    "pagedown": "page down",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "plus": "+",
    "minus": "-",
    "full_stop": ".",
    "comma": ",",
    "greater_than_sign": ">",
    "less_than_sign": "<",
}


def readable(key: str) -> str:
    """A key as it is written on a keyboard: "?" for "question_mark"."""
    return _SIGNS.get(key, key)


def looking(bindings: Iterable[Binding]) -> tuple[Binding, ...]:
    """The bindings that change nothing."""
    return tuple(binding for binding in bindings if not binding.acts)


LOOK_BACK = "replay"
"""The binding that goes into the past of a session, and comes back from it."""

NOT_REPLAYED = frozenset({"acknowledge", "acknowledge_all", "beside", "log", "unacknowledge"})
"""What shows the files of now, or of another moment, has no place in a replay."""


OF_TABS = frozenset({"next_tab", "previous_tab"})


def of_one(bindings: Iterable[Binding]) -> tuple[Binding, ...]:
    """The bindings where one session is looked at."""
    return tuple(binding for binding in bindings if binding.id not in OF_TABS)


def of_live(bindings: Iterable[Binding], *, looks_back: bool = True) -> tuple[Binding, ...]:
    """The bindings of a session that is watched."""
    return tuple(each for each in bindings if not each.replays and (looks_back or each.id != LOOK_BACK))


def of_replay(bindings: Iterable[Binding], *, comes_back: bool = False) -> tuple[Binding, ...]:
    """The bindings of a night that is replayed, where nothing acts; `comes_back`: there is a now to come back to."""
    gone = NOT_REPLAYED if comes_back else NOT_REPLAYED | {LOOK_BACK}
    shown = [replace(each, verb="now", footer=True) if each.id == LOOK_BACK else each for each in looking(bindings)]
    # First of all how to move about in it: a narrow footer has room for a few.
    shown.sort(key=lambda each: each.group != REPLAY)
    return tuple(each for each in shown if each.id not in gone)


def remap(
    overrides: Mapping[str, Iterable[str] | str], bindings: tuple[Binding, ...] = BINDINGS
) -> tuple[Binding, ...]:
    """The table with other keys for some ids. A string may hold several keys, comma-separated.

    Raises BadKeymap for an id that is not in the table, for no key at all, and for a key given to two ids.
    """
    known = {binding.id for binding in bindings}
    for name in overrides:
        if name not in known:
            raise BadKeymap(f"keys.{name}: no such binding; there are {', '.join(sorted(known))}")
    changed = []
    for binding in bindings:
        if binding.id in overrides:
            value = overrides[binding.id]
            keys = value.split(",") if isinstance(value, str) else list(value)
            binding = replace(binding, keys=tuple(key.strip() for key in keys if key.strip()))
            if not binding.keys:
                raise BadKeymap(f"keys.{binding.id}: no key; give at least one")
        changed.append(binding)
    return check(tuple(changed))


def check(bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
    """`bindings`, unless a key or an id is there twice. Raises BadKeymap naming both."""
    owners: dict[str, str] = {}
    for binding in bindings:
        for key in binding.keys:
            if key in owners:
                raise BadKeymap(f"keys.{binding.id}: {readable(key)} is already the key of {owners[key]}")
            owners[key] = binding.id
    return bindings


def markdown(bindings: tuple[Binding, ...] = BINDINGS) -> str:
    """The table as the README shows it."""
    rows = ["| key | what it does |", "| --- | --- |"]
    for binding in bindings:
        keys = " or ".join(f"`{readable(key)}`" for key in binding.keys) or f"`ctrl+p` {binding.verb}"
        danger = " **(asks first)**" if binding.danger else ""
        rows.append(f"| {keys} | {binding.text}{danger} |")
    return "\n".join(rows) + "\n"
