"""Pass after pass until the round is done, by one watcher of a session at a time."""

from collections.abc import Callable
from pathlib import Path

from kev import control, files
from kev.commitments import SPAWN_SUFFIX, is_on_record
from kev.compute.errors import RemoteError
from kev.errors import DamagedFile, KevError, LockHeld, Refused
from kev.ledger.book import NotRecorded
from kev.rounds.engine import Engine
from kev.rounds.specs import LoadedSpec
from kev.rounds.watching.passes import Watch
from kev.rounds.watching.report import is_quiet, mirror_session, write_pass, write_sign_of_life
from kev.session import session_name

INTERVAL_S = 120.0
READING_S = 300.0
"""The meter is read this often while anything runs, so that no cycle ends long after its last reading."""

Finish = Callable[[LoadedSpec], bool]
"""Writes the read-out; returns whether it is complete."""


def watcher_lock(state: Path) -> Path:
    """Held by the one watcher of a session."""
    return state.with_name(f".{session_name(state)}-watcher.lock")


async def watch(
    engine: Engine, loaded: LoadedSpec, finish: Finish, *, interval_s: float = INTERVAL_S, stagger_s: float = 60.0,
    ready: Callable[[], None] = lambda: None, passes: int | None = None, continues: bool = True,
) -> bool:  # fmt: skip
    """Watch the round to its end. Returns whether the read-out is complete.

    `ready` is called once the lock is held and a pass was made. Ends early after `passes` of them, for a look. Without
    `continues`, a trial that was cut off waits for a person. Raises
    LockHeld if the session has a watcher, Refused for a round with studies that were never launched, or DamagedFile
    for a ledger that is damaged when it begins.
    """
    with files.locked(watcher_lock(engine.gate.state)):
        check_launched(engine, loaded)
        return await _watch(Watch(engine, loaded, stagger_s, continues), finish, interval_s, ready, passes)


def check_launched(engine: Engine, loaded: LoadedSpec) -> None:
    """Raises Refused if a study of the round is not in the ledger, or DamagedFile if its record cannot be believed."""
    units = engine.ledger.read()
    for name in loaded.spec.studies:
        if not units.of_name(name):
            if is_on_record(engine.runs, name):
                raise Refused(f"study {name}: runs/{name}{SPAWN_SUFFIX} is there, and the ledger did not start it; "
                              "what the ledger did not start is not watched")  # fmt: skip
            raise Refused(f"study {name}: was never launched; `launch` starts it, then watch")


async def _watch(
    state: Watch, finish: Finish, interval_s: float, ready: Callable[[], None], passes: int | None
) -> bool:
    engine, done = state.engine, 0
    last_reading = engine.clock.monotonic()
    while True:
        over, word = await _pass(state)
        done += 1
        await _report(state, done, word)
        if done == 1:
            ready()
        if over:
            break
        if passes is not None and done >= passes:
            return False
        if engine.clock.monotonic() - last_reading >= READING_S:
            last_reading = engine.clock.monotonic()
            await _read_meter(engine)
        await engine.gate.sleep(max(interval_s, state.retry_after_s))
    complete = finish(state.loaded)
    words = "the read-out is complete" if complete else "the read-out is INCOMPLETE: it says what is missing"
    await _report(state, done, "done", words)
    # Last of all: whoever reads this line knows that nothing of the watcher is left to come.
    engine.gate.note("done", f"round {state.loaded.spec.round}: {words}", severity="info" if complete else "warning")
    engine.say(f"done: round {state.loaded.spec.round}: {words}")
    return complete


async def _pass(state: Watch) -> tuple[bool, str]:
    """One pass. Returns whether it was the last, and in a word how the watch stands."""
    try:
        await state.run()
    except NotRecorded as error:
        # What could not be written was not begun; a disk that is full now may be emptied.
        _complain(state, str(error))
    except DamagedFile as error:
        state.report_damage(error)
    try:
        mode = control.read_control(state.engine.gate.state).mode
        word = "watching" if mode == "running" else "quiesced" if is_quiet(state) else "paused"
        return is_over(state), word
    except DamagedFile as error:
        # A ledger that cannot be believed ends nothing: it is read anew on each pass until it is put back.
        state.report_damage(error)
        return False, "paused"


async def _report(state: Watch, passes: int, word: str, text: str = "") -> None:
    """Write what others read. None of it decides anything, so nothing of it may stop the watch."""
    try:
        write_sign_of_life(state, passes, word, text)
    except (NotRecorded, DamagedFile, OSError) as error:
        _complain(state, str(error))
    try:
        write_pass(state)
        await mirror_session(state)
    except LockHeld:
        pass  # a launch has the session; the next pass brings it up
    except (NotRecorded, DamagedFile, OSError) as error:
        _complain(state, str(error))


def _complain(state: Watch, text: str) -> None:
    if text not in state.warned:
        state.warned.add(text)
        state.engine.say(f"!!! {text}")


def is_over(state: Watch) -> bool:
    """Whether nothing is left to watch: every unit settled, every arm read or given up."""
    return all(unit.settled for unit in state.units()) and all(
        state.arms.is_through(arm, state) for arm in state.loaded.spec.arms
    )


async def _read_meter(engine: Engine) -> None:
    try:
        await engine.gate.read_meter()
    except (Refused, RemoteError, LockHeld) as error:
        engine.gate.note("reading", f"none: {error}", severity="warning")
    except KevError as error:
        engine.say(f"!!! {error}")
