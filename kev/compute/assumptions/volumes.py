"""Of volumes and Dicts."""

import asyncio

from kev.compute.assumptions.asking import assumes, end_of, expect, raised_by, raw_client, start
from kev.compute.client import load_modal
from kev.compute.contract import DICT, VOLUME, Probe
from kev.compute.protocol import Phase
from kev.compute.pull import sum_of


async def write(probe: Probe, name: str, text: str) -> str:
    """Commit a file from within a container; its path on the volume."""
    path = f"{probe.run}/{name}"
    state = await end_of(probe, await start(probe, "write_files", {"files": {path: text}}))
    expect(state.phase is Phase.SUCCEEDED, state)
    return path


@assumes("volume-commit", "what a container committed is listed outside with its size, and reads the same")
async def _(probe: Probe) -> None:
    """A container writes a file and commits; listdir and read_file from here."""
    path = await write(probe, "listed/hello.txt", "hello, volume")
    listed = await probe.compute.listdir(VOLUME, f"{probe.run}/listed")
    expect([(entry.path, entry.size) for entry in listed] == [(path, 13)], listed)
    data = await probe.compute.read(VOLUME, path, limit=1000)
    expect(data == b"hello, volume", data)


@assumes("volume-pull", "a tree can be listed recursively and read file by file")
async def _(probe: Probe) -> None:
    """A pull of three files, two levels deep, one of them empty."""
    for name, text in {"tree/a.txt": "a", "tree/b/c.txt": "c" * 100, "tree/b/empty": ""}.items():
        await write(probe, name, text)
    home = probe.scratch / "tree"
    report = await probe.compute.pull(VOLUME, f"{probe.run}/tree", home)
    expect(report.fetched == ("a.txt", "b/c.txt", "b/empty"), report)
    expect(len(sum_of(home / "b/c.txt")) == 64 and (home / "b/c.txt").stat().st_size == 100, report)


@assumes("volume-missing-path", "listing a directory that is not there is NotFoundError")
async def _(probe: Probe) -> None:
    """Volume.listdir of an invented path, as the client raises it."""
    async with raw_client(probe) as client:
        modal = load_modal()
        volume = modal.Volume.from_name(VOLUME, environment_name=probe.settings.environment, client=await client.open())
        error = await raised_by(volume.listdir.aio(f"{probe.run}/nowhere"))
    expect(isinstance(error, modal.exception.NotFoundError), repr(error))


@assumes("volume-missing-file", "reading a file that is not there is FileNotFoundError")
async def _(probe: Probe) -> None:
    """read of an invented path."""
    found = await probe.compute.read(VOLUME, f"{probe.run}/nothing.txt", limit=10)
    expect(found is None, found)


@assumes("volume-missing", "a volume that does not exist is NotFoundError, and is not created by asking")
async def _(probe: Probe) -> None:
    """listdir of an invented volume, twice."""
    name = f"kev-nothing-{probe.run}"
    found = [await probe.compute.listdir(name, "/"), await probe.compute.listdir(name, "/")]
    expect(found == [[], []], found)


@assumes("claim-once", "Dict.put with skip_if_exists tells exactly one of many callers that the key is new")
async def _(probe: Probe) -> None:
    """Ten claims of one key at once, over two connections."""
    modal = load_modal()
    async with raw_client(probe) as one, raw_client(probe) as other:
        clients = [await one.open(), await other.open()]
        named = [
            modal.Dict.from_name(
                DICT, environment_name=probe.settings.environment, create_if_missing=True, client=client
            )
            for client in clients
        ]
        key = f"{probe.run}/claim"
        answers = await asyncio.gather(*(named[turn % 2].put.aio(key, True, skip_if_exists=True) for turn in range(10)))
        there = await named[0].contains.aio(key)
    expect(sorted(answers) == [False] * 9 + [True] and there, answers)
