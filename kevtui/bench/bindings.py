"""The keys of a bench's screen: those of the dashboard that make sense here, under the same ids and keys."""

from dataclasses import replace
from typing import Final

from kevtui.bench import places
from kevtui.keymap import PANELS, WITHIN, Binding

_SAME: Final = frozenset(
    (
        "details", "zoom", "next_panel", "previous_panel", "up", "down", "page_up", "page_down", "first", "last",
        "copy", "back", "theme", "redraw", "help", "palette", "quit",
    )
)  # fmt: skip

_RUN: Final = {
    "panel_1": (places.SUBMISSIONS, "submissions"),
    "panel_2": (places.RUN, "run"),
    "panel_3": (places.JOURNAL, "journal"),
    "panel_4": (places.FAILURES, "failures"),
    "panel_5": (places.AGENT_LOG, "agent log"),
    "panel_8": (places.FINDINGS, "attention"),
    "panel_9": (places.TRAJECTORY, "scores"),
}
_SEVERAL: Final = {
    "panel_1": (places.RUNS, "runs"),
    "panel_2": (places.MATRIX, "agent by task"),
    "panel_8": (places.FINDINGS, "attention"),
    "panel_9": (places.TRAJECTORY, "scores"),
}


def bindings_for(table: tuple[Binding, ...], *, several: bool) -> tuple[Binding, ...]:
    """The bindings of a bench, with the keys that `table`, the user's, has for the same ids."""
    panels = _SEVERAL if several else _RUN
    chosen = []
    for binding in table:
        if binding.id in _SAME:
            chosen.append(binding)
        elif binding.id in panels:
            name, words = panels[binding.id]
            action = f"screen.jump('{name}')"
            chosen.append(replace(binding, verb=words, text=f"Go to the {words}", action=action, group=PANELS))
        elif binding.id == "log" and not several:
            chosen.append(replace(binding, text="All of what the agent printed, from its end", footer=True))
        elif binding.id == "sort" and several:
            chosen.append(replace(binding, text="Sort the runs by the next column", group=WITHIN))
    return tuple(chosen)
