"""Draw the dialogs in docs/images: real proposals over the registered round that the tests of the actions make.

    PYTHONPATH=$PWD python scripts/make_dialog_pictures.py [NAME ...]

Nothing is started: every picture is taken before the key that confirms, or while that can still be taken back.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
for directory in ("tests/kevtui/actions", "tests/kevtui", "tests/kev/rounds"):
    sys.path.insert(0, str(REPOSITORY / directory))

from acting_app import Acting, acting  # noqa: E402  found through the lines above
from action_lab import ActionLab, prepare  # noqa: E402

from kev import files  # noqa: E402
from kevtui.screens.action_dialog import ActionDialog  # noqa: E402

IMAGES = REPOSITORY / "docs" / "images"
FULL = "trial/r201-full/trial-0"
WIDE, PHONE = (120, 40), (80, 24)


def nothing(lab: ActionLab) -> None:
    """The round is registered and nothing of it was launched."""


@dataclass(frozen=True)
class Picture:
    name: str
    keys: tuple[str, ...]
    size: tuple[int, int] = WIDE
    prepare: Callable[[ActionLab], object] = nothing
    typed: str = ""
    agree: bool = False


PICTURES = (
    Picture("act-launch", ("L",)),
    Picture("act-launch-named", ("L",), PHONE, typed="r201"),
    Picture("act-reads", ("M",)),
    Picture("act-resume", ("R",), prepare=lambda lab: lab.start(FULL, outcome="timed_out")),
    Picture("act-cancel", ("X", "enter"), prepare=lambda lab: lab.start(FULL)),
    Picture("act-checklist", ("L",), prepare=lambda lab: lab.open_session(age_s=7200)),
    Picture("act-taken-back", ("M",), agree=True),
)


async def draw(picture: Picture, lab: ActionLab) -> None:
    picture.prepare(lab)
    async with acting(lab, size=picture.size, undo_window_s=60) as it:
        await it.press(*picture.keys)
        await it.dialog()
        await _go_on(it, picture)
        drawn = it.app.export_screenshot(title="kevtui").encode()
        files.write_atomic(IMAGES / f"{picture.name}.svg", drawn)
        it.screen.actions.take_back()


async def _go_on(it: Acting, picture: Picture) -> None:
    if picture.typed:
        await it.press("tab")
        await it.type(picture.typed)
        await it.press("enter")
        await it.until_shown("The name is right")
    if picture.agree:
        await it.press("y")
        await it.until(lambda: not isinstance(it.app.screen, ActionDialog), "the dialog to close")
        await it.until_shown("takes it back")


def main(names: list[str]) -> int:
    folder = Path(tempfile.mkdtemp(prefix="kevtui-pictures-"))
    try:
        prepared = prepare(folder / "prepared")
        for picture in PICTURES:
            if not names or picture.name in names:
                asyncio.run(draw(picture, ActionLab(prepared, folder / picture.name)))
                print(IMAGES / f"{picture.name}.svg")
    finally:
        files.remove_tree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
