"""How fast the loopback control plane is, as a Markdown table.

    python benchmarks/emulator.py [--full]

Each figure is the median of several tries through the real client; uploads and pulls are made once. `--full` moves 1 GB
instead of 128 MB.
"""

import argparse
import asyncio
import hashlib
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

APP = """
import modal

app = modal.App("speed")


@app.function()
def first_line():
    print("first line", flush=True)


@app.function(timeout=600)
def hold(pipe):
    with open(pipe) as stream:
        return stream.read()
"""

MIB = 1024 * 1024
TRIES = 5


async def timed(action: Callable[[], Awaitable[Any]]) -> float:
    begun = time.perf_counter()
    await action()
    return time.perf_counter() - begun


async def median(action: Callable[[], Awaitable[Any]], tries: int = TRIES) -> float:
    return statistics.median([await timed(action) for _ in range(tries)])


class Bench:
    """One emulator, its client, and the rows of the table."""

    def __init__(self, root: Path, full: bool) -> None:
        self.root, self.full = root, full
        self.rows: list[tuple[str, str, str]] = []

    def row(self, what: str, seconds: float, budget: str = "") -> None:
        shown = f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
        self.rows.append((what, shown, budget))

    async def run(self) -> None:
        from kev.emulator import Emulator

        started = []
        for number in range(TRIES):
            plane = Emulator(self.root / f"start-{number}")
            started.append(await timed(plane.start))
            await plane.stop()
        self.row("start, after import", statistics.median(started), "<= 50 ms")
        async with Emulator(self.root / "plane") as plane:
            os.environ.update(plane.environment)
            await self.with_client(plane)

    async def with_client(self, plane: Any) -> None:
        import modal

        client = await modal.Client.from_credentials.aio(plane.credentials.token_id, plane.credentials.token_secret)
        source = self.root / "speed_app.py"
        source.write_text(APP)
        sys.path.insert(0, str(self.root))
        import speed_app

        self.row("deploy of two functions", await timed(lambda: speed_app.app.deploy.aio(client=client)))
        await self.calls(plane, client)
        await self.containers(plane, client)
        await self.volume(plane, client)
        await client.__aexit__(None, None, None)

    async def calls(self, plane: Any, client: Any) -> None:
        import modal

        function = modal.Function.from_name("speed", "first_line", client=client)
        await function.hydrate.aio()
        log = plane.book[next(iter(plane.store.apps))]

        async def first_line() -> None:
            # Fresh variants, so that each try starts a container of its own.
            seen = len([line for line in log.lines if line.text == "first line\n"])
            fresh = function.with_options(timeout=300 + seen)
            await fresh.spawn.aio()
            while True:
                ear = log.bell.listen()
                if len([line for line in log.lines if line.text == "first line\n"]) > seen:
                    return
                await ear.wait(30)

        self.row("spawn to first log line", await median(first_line), "<= 0.6 s")
        pipe = self.root / "pipe"
        os.mkfifo(pipe)
        call = await modal.Function.from_name("speed", "hold", client=client).spawn.aio(str(pipe))

        async def poll() -> None:
            try:
                await call.get.aio(timeout=0)
            except TimeoutError:
                return

        await poll()
        self.row("poll", await median(poll, 50), "<= 2 ms")
        self.row("500 polls at once", await median(lambda: asyncio.gather(*(poll() for _ in range(500))), 3))
        await call.cancel.aio(terminate_containers=True)

    async def containers(self, plane: Any, client: Any) -> None:
        import modal

        pipe, function = str(self.root / "pipe"), modal.Function.from_name("speed", "hold", client=client)
        begun = time.perf_counter()
        calls = await asyncio.gather(*(function.spawn.aio(pipe) for _ in range(50)))
        self.row("50 spawns at once, acknowledged", time.perf_counter() - begun)
        while sum(len(each.calls) for each in plane.scheduler.containers.values()) < 50:
            await asyncio.sleep(0.05)
        self.row("50 containers at work", time.perf_counter() - begun)
        begun = time.perf_counter()
        await asyncio.gather(*(call.cancel.aio(terminate_containers=True) for call in calls))
        while plane.scheduler.containers:
            await asyncio.sleep(0.01)
        self.row("50 containers ended", time.perf_counter() - begun)

    async def volume(self, plane: Any, client: Any) -> None:
        """Pull a tree of files with a manifest of their sums; once whole, and once the half that a stop left over."""
        import modal

        from kev.compute.client import settings_from
        from kev.compute.modal_compute import ModalCompute

        count = 8
        size = (1024 if self.full else 128) * MIB // count
        tree = self.root / "tree"
        make_tree(tree, count, size)
        volume = modal.Volume.from_name("speed", create_if_missing=True, client=client)
        begun = time.perf_counter()
        async with volume.batch_upload.aio() as batch:
            # By its path: from a buffer the client copies all of it for every block.
            batch.put_directory(tree, "/tree")
        total = count * size // MIB
        self.row(f"upload of {total} MB in {count} files", time.perf_counter() - begun)
        shutil.rmtree(tree)
        async with ModalCompute(settings_from(plane.environment, app="speed")) as compute:

            async def pull(target: Path) -> None:
                report = await compute.pull("speed", "/tree", target, weights=True)
                assert len(report.verified) == count, report

            seconds = await timed(lambda: pull(self.root / "pulled"))
            self.row(f"pull of {total} MB, verified ({total / seconds:.0f} MB/s)", seconds)
            for number in range(count // 2):
                (self.root / f"pulled/part-{number}").unlink()
            seconds = await timed(lambda: pull(self.root / "pulled"))
            self.row("the same pull again, with half of the files there and verified", seconds)


def make_tree(tree: Path, count: int, size: int) -> None:
    """`count` files of `size` random bytes, and the manifest that a container would leave beside them."""
    tree.mkdir()
    sums = {}
    for number in range(count):
        digest = hashlib.sha256()
        with (tree / f"part-{number}").open("wb") as stream:
            for _ in range(size // MIB):
                piece = os.urandom(MIB)
                stream.write(piece)
                digest.update(piece)
        sums[f"part-{number}"] = {"sha256": digest.hexdigest(), "bytes": size}
    (tree / "manifest.json").write_text(json.dumps({"files": sums}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="move 1 GB")
    options = parser.parse_args()
    begun = time.perf_counter()
    import modal  # noqa: F401

    imported = time.perf_counter() - begun
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(Path(directory), options.full)
        bench.row("import of modal, once", imported)
        asyncio.run(bench.run())
    print("| what | median | budget |\n| --- | ---: | ---: |")
    for row in bench.rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
