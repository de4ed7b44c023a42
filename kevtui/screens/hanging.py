"""Text in the last of several columns: what has no room goes on below its own beginning."""

import textwrap


def hanging(text: str, column: int, width: int) -> str:
    """`text`, which begins at `column`, in lines that end before `width`; as it is where that leaves no room."""
    room = width - column
    if len(text) <= room or room < 10:
        return text
    lines = textwrap.wrap(text, room, expand_tabs=False, replace_whitespace=False, break_on_hyphens=False)
    return f"\n{' ' * column}".join(lines)
