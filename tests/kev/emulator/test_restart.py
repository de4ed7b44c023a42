"""An emulator that stops, or is found stopped, and continues on the same root."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kev import files
from kev.emulator import aftermath
from kev.emulator.entities import DictionaryItem, Entity, Secret, Volume
from kev.emulator.journal import Journal
from kev.emulator.store import Store
from kev.errors import DamagedLine

from .conftest import Begin, Pipe


async def test_everything_is_there_again_after_a_stop(begin: Begin, tmp_path: Path) -> None:
    night = await begin()
    await night.call("write", "kept", "text")
    done = await night.spawn("speak", "a line")
    await done.get.aio(timeout=60)
    await night.printed("a line")
    pipe = Pipe(tmp_path / "pipe")
    open_call = await night.spawn("hold", pipe.path)
    await night.printed("holding")
    spent = night.plane.meter.total()
    url, environment = night.plane.url, night.plane.environment
    await night.plane.stop()

    again = await begin(deploy=False)
    again.app_id = night.app_id
    assert (again.plane.url, again.plane.environment) == (url, environment), "clients need not be told anything"
    assert await again.volume_text("kept") == "text"
    assert [entry.message async for entry in done.logs.tail.aio(10)] == ["a line\n"]
    assert again.plane.meter.total() >= spent
    assert await done.get.aio(timeout=0) is None
    await again.printed("holding", times=2)
    pipe.release("after the restart")
    assert await open_call.get.aio(timeout=60) == "after the restart"


async def test_a_call_cancelled_before_a_kill_does_not_run_after_it(begin: Begin, tmp_path: Path) -> None:
    night = await begin()
    call = await night.spawn("hold_on", Pipe(tmp_path / "pipe").path, str(tmp_path / "log"))
    await night.printed("holding")
    await call.cancel.aio()
    await night.plane.stop()

    again = await begin(deploy=False)
    assert again.plane.store.calls[call.object_id].is_done
    assert not again.plane.scheduler.containers


values = st.builds(
    DictionaryItem, id=st.sampled_from(["a", "b", "c"]), dictionary_id=st.just("di-1"), key=st.binary(max_size=5),
    value=st.binary(max_size=20),
) | st.builds(Secret, id=st.sampled_from(["s", "t"]), name=st.text(max_size=5),
              values=st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=2))  # fmt: skip


@given(changes=st.lists(st.tuples(st.booleans(), values), max_size=20), cut=st.integers(0, 60))
async def test_the_journal_gives_back_the_last_of_each_whatever_was_torn_off(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[bool, Entity]], cut: int
) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    journal, expected = Journal(path), {}
    for removes, entity in changes:
        key = entity.kind, entity.id
        if removes:
            journal.record_removal(entity)
            expected.pop(key, None)
        else:
            journal.record(entity)
            expected[key] = entity
    await journal.sync()
    torn = Volume(id="vo-1", name="never acknowledged", environment="main", version=2, created=0)
    line = b'{"kind":"volume","id":"vo-1","value":' + torn.model_dump_json().encode()
    with path.open("ab") as stream:
        stream.write(line[: min(cut, len(line) - 1)])

    assert {(entity.kind, entity.id): entity for entity in Journal(path).read()} == expected


async def test_many_changes_at_once_share_few_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes = []
    real = files.append
    monkeypatch.setattr(files, "append", lambda path, data: writes.append(len(data)) or real(path, data))
    journal = Journal(tmp_path / "journal.jsonl")
    for number in range(500):
        journal.record(Secret(id=str(number), name="", values={}))
    await journal.sync()

    assert len(writes) == 1 and len(list(journal.read())) == 500


def test_a_damaged_line_in_the_middle_is_named_and_nothing_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    good = json.dumps({"kind": "secret", "id": "s", "value": {"id": "s", "name": "", "values": {}}})
    path.write_text(f"{good}\n{{broken\n{good}\n")
    before = path.read_bytes()
    with pytest.raises(DamagedLine, match="line 2"):
        Store(Journal(path)).load()

    assert path.read_bytes() == before


async def test_a_full_device_refuses_the_reply_and_keeps_the_change_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.record(Secret(id="s", name="", values={}))

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "append", refuse)
        with pytest.raises(OSError, match="No space"):
            await journal.sync()

    await journal.sync()
    assert [entity.id for entity in journal.read()] == ["s"]


async def test_containers_of_a_killed_emulator_are_ended_and_their_times_taken_from_the_records(
    begin: Begin, tmp_path: Path
) -> None:
    """As after a kill of the emulator and the supervisor in one: the records are all that is left."""
    night = await begin()
    await night.call("echo", 1)
    [task_id] = night.plane.scheduler.containers
    await night.plane.stop()
    tasks = night.plane.root / "tasks"
    task = night.plane.store.tasks[task_id]
    task.finished, task.ended_by = 0, ""
    (tasks / task_id / "exit.json").unlink()
    printed = (tasks / task_id / "output.jsonl").stat().st_mtime

    assert aftermath.end_what_is_left(tasks) == []
    assert aftermath.settle_tasks(night.plane.store, tasks, 1e12) == [task]
    assert task.finished == pytest.approx(printed)


def test_an_id_that_went_to_another_process_is_not_killed(tmp_path: Path) -> None:
    import os

    directory = tmp_path / "ta-1"
    directory.mkdir()
    me = {"pid": os.getpid(), "born": "1", "supervisor": os.getpid(), "supervisor_born": "1"}
    (directory / "process.json").write_text(json.dumps(me))

    assert aftermath.end_what_is_left(tmp_path) == []
