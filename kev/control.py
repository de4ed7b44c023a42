"""Pausing a session: a file that whoever starts something reads first.

A soft pause starts nothing new; what runs is polled, continued and brought home. A hard pause only polls. A control
file that cannot be believed is a soft pause: in doubt nothing is started.
"""

from pathlib import Path

from kev import files
from kev.errors import DamagedFile, NotFound, Refused
from kev.records.base import read_record, write_record
from kev.records.control import MODES, Control
from kev.session import session_name


def control_path(state: Path) -> Path:
    """The control file of the session whose state file is `state`."""
    return state.with_name(f"{session_name(state)}-control.json")


def read_control(state: Path) -> Control:
    """What the session may do. Never raises for a bad file."""
    path = control_path(state)
    try:
        control = read_record(path, Control)
    except NotFound:
        return Control(mode="running")
    except DamagedFile as error:
        return Control(mode="soft", reason=str(error))
    return control if control.mode in MODES else Control(mode="soft", reason=f"{path}: mode {control.mode!r:.40}")


def set_control(
    state: Path, mode: str, *, who: str, at: float, reason: str, spend_limit: bool = False
) -> Control:  # fmt: skip
    """Pause or go on, and say who wanted it. Raises OSError."""
    control = Control(mode=mode, who=who, at=at, reason=reason, spend_limit=spend_limit)
    with files.locked(control_path(state).with_suffix(".lock"), wait=True):
        write_record(control_path(state), control)
    return control


def check_may_start(state: Path, what: str, *, continues: bool = False) -> None:
    """Raises Refused while the session is paused; a soft pause lets what runs already be continued."""
    control = read_control(state)
    if control.mode == "running" or (control.mode == "soft" and continues and not control.spend_limit):
        return
    by = f" by {control.who}" if control.who else ""
    raise Refused(
        f"{what}: the session is paused{by} ({control.mode}: {control.reason or 'no reason given'}); "
        "`python -m kev.rounds unpause` lifts it"
    )
