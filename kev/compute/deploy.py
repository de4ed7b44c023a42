"""Deploying: `modal deploy` in a process of its own, since it imports user code; its output is streamed."""

import asyncio
import signal
from collections.abc import AsyncGenerator

from kev.compute.client import ModalClient
from kev.compute.protocol import DeployEvent, DeployEventKind
from kev.text import shorten, visible_bytes

DEADLINE_S = 1800.0
"""Building an image takes minutes."""

MAX_LINE_BYTES = 64 * 1024
STOP_GRACE_S = 5.0


async def deploy(client: ModalClient, ref: str, *, tag: str = "") -> AsyncGenerator[DeployEvent, None]:
    """See `Compute.deploy`."""
    await client.open()
    tagged = ["--tag", tag] if tag else []
    command, environment = client.command_line("deploy", "--name", client.app_name, *tagged, ref)
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=environment,
        limit=MAX_LINE_BYTES,
    )
    assert process.stdout is not None
    last = ""
    try:
        async with asyncio.timeout(DEADLINE_S):
            async for line in _lines(process.stdout):
                last = line
                yield DeployEvent(DeployEventKind.OUTPUT, line)
            code = await process.wait()
    except TimeoutError:
        yield DeployEvent(DeployEventKind.FAILED, f"not deployed within {DEADLINE_S:g} s; look at the image build")
        return
    finally:
        await _end(process)
    if code:
        yield DeployEvent(DeployEventKind.FAILED, f"modal deploy {ref}: {last or f'ended with status {code}'}")
    else:
        yield DeployEvent(DeployEventKind.DEPLOYED, client.app_name)


async def _lines(stream: asyncio.StreamReader) -> AsyncGenerator[str, None]:
    while True:
        try:
            line = await stream.readuntil(b"\n")
        except asyncio.IncompleteReadError as end:
            line = end.partial
            if not line:
                return
        except asyncio.LimitOverrunError as overrun:
            line = await stream.read(overrun.consumed or MAX_LINE_BYTES)
        text = shorten(visible_bytes(line.rstrip()), 2000)
        if text:
            yield text


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a deployment that is still running: first as Ctrl-C would, so that it can tidy up."""
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        async with asyncio.timeout(STOP_GRACE_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
