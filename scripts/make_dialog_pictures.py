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
from ready_verbs import READY  # noqa: E402

from kev import files  # noqa: E402
from kev.ledger.book import Ledger  # noqa: E402
from kev.ledger.views import with_work, write_views  # noqa: E402
from kev.records.base import read_record, write_record  # noqa: E402
from kev.records.session import SessionState  # noqa: E402
from kevtui.screens.action_dialog import ActionDialog  # noqa: E402
from kevtui.screens.fields import FieldsScreen  # noqa: E402

IMAGES = REPOSITORY / "docs" / "images"
WIDE, PHONE = (120, 40), (80, 24)
VERBS = {verb.id: verb for verb in READY}


@dataclass(frozen=True)
class Picture:
    name: str
    verb: str
    """The id of the binding."""
    size: tuple[int, int] = WIDE
    prepare: Callable[[ActionLab], object] | None = None
    """What the checkout holds, if not what the verb needs."""
    shows: str = "ActionDialog"
    """The class of the screen that is on top."""
    is_asked: bool = False
    """Taken before what is asked for first was filled in."""
    is_named: bool = False
    """Taken once the name was typed."""
    is_agreed: bool = False
    """Taken once it was confirmed, while it can be taken back."""


PICTURES = (
    *(Picture(f"act-{verb.id.replace('_', '-')}", verb.id) for verb in READY if verb.binding.danger),
    Picture("act-launch-named", "launch", PHONE, is_named=True),
    Picture("act-checklist", "launch", prepare=lambda lab: lab.open_session(age_s=7200)),
    Picture("act-taken-back", "reads", shows="WatchScreen", is_agreed=True),
    Picture("act-open-fields", "open", shows="FieldsScreen", is_asked=True),
)


async def draw(picture: Picture, lab: ActionLab) -> None:
    verb = VERBS[picture.verb]
    (picture.prepare or verb.prepare)(lab)
    _publish(lab)
    async with acting(lab, size=picture.size, undo_window_s=60) as it:
        await it.press(await verb.reach(it))
        if picture.is_asked:
            await it.until(lambda: isinstance(it.app.screen, FieldsScreen), "the fields")
        else:
            await verb.fill(it)
            await it.dialog()
            await _go_on(it, picture)
        if type(it.app.screen).__name__ != picture.shows:
            raise SystemExit(f"{picture.name}: shows {type(it.app.screen).__name__}, not {picture.shows}")
        drawn = it.app.export_screenshot(title="kevtui").encode()
        files.write_atomic(IMAGES / f"{picture.name}.svg", drawn)
        it.screen.actions.take_back()


def _publish(lab: ActionLab) -> None:
    """What the engine writes for others to read, of the ledger that the lab has filled, and whose the round is."""
    units = Ledger(lab.runs).read()
    write_views(lab.runs, units)
    state = read_record(lab.state, SessionState)
    opened_for = {"rounds": ["experiments/rounds/r201.json"]}
    write_record(lab.state, with_work(SessionState.model_validate(state.to_json() | opened_for), units))


async def _go_on(it: Acting, picture: Picture) -> None:
    if picture.is_named:
        await VERBS[picture.verb].name(it)
    if picture.is_agreed:
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
