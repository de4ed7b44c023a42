"""The connection to Modal: its settings, its credentials, and a deadline around everything that is asked.

The client of `modal` waits long by itself (56 s for a host that never answers, without limit when throttled) and
reads its settings from the process environment. Here both are taken in hand.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import orjson

from kev.compute.classify import RATE_WORDS, SPEND_WORDS, error_of, exhausted
from kev.compute.errors import AuthFailed, NotDeployed, RemoteError, Unavailable
from kev.compute.protocol import Identity
from kev.errors import UsageError
from kev.text import shorten, visible_bytes

if TYPE_CHECKING:
    import modal

Answer = TypeVar("Answer")

APP_NAME_VARIABLE = "KEV_APP_NAME"
DEFAULT_APP = "kev-research"

SIMULATED_WORKSPACE = "emulated"
"""The workspace name under which the emulator of this project answers."""

FORCED = {
    # Pickled results would be unpickled here, and make a remote TimeoutError look like "not finished yet".
    "MODAL_PAYLOAD_FORMAT": "cbor",
    # Not to wait inside the client: what is throttled is reported, and waited for where it can be seen.
    "MODAL_MAX_THROTTLE_WAIT": "0",
    # Its warnings would be written over the screen.
    "MODAL_LOGLEVEL": "ERROR",
}
"""Settings of the client that this package depends on, whatever the user has set."""

DIRECT = "MODAL_DISABLE_API_PROXY"
"""Set for a server on loopback: the client would send even those requests through a proxy."""

MAX_CLI_BYTES = 64 * 1024 * 1024
CANCEL_GRACE_S = 1.0
CONCURRENT = 8
"""Questions under way at once."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long an answer may take, in seconds."""

    question: float = 20.0
    """A hanging server costs the client 21 s of its own tries."""
    ping: float = 5.0
    stream: float = 120.0
    """A listing or a report, which may be long, and the next block of a file."""
    command: float = 60.0
    """One run of the command line."""


@dataclass(frozen=True, slots=True)
class ModalSettings:
    """Which account, environment and app. What is None is taken from the process environment or the user's profile."""

    app: str = ""
    environment: str | None = None
    server_url: str | None = None
    token_id: str | None = None
    token_secret: str | None = None
    deadlines: Deadlines = Deadlines()

    def __repr__(self) -> str:  # a secret must not travel in a traceback
        return f"ModalSettings(app={self.app_name!r}, environment={self.environment!r}, server_url={self.server_url!r})"

    @property
    def app_name(self) -> str:
        return self.app or os.environ.get(APP_NAME_VARIABLE) or DEFAULT_APP

    def variables(self) -> dict[str, str]:
        """The environment variables that make the client use these settings."""
        given = {
            "MODAL_ENVIRONMENT": self.environment,
            "MODAL_SERVER_URL": self.server_url,
            "MODAL_TOKEN_ID": self.token_id,
            "MODAL_TOKEN_SECRET": self.token_secret,
        }
        kept = FORCED | ({DIRECT: "1"} if is_loopback(self.server_url or "") else {})
        return kept | {name: value for name, value in given.items() if value is not None}


def settings_from(environment: Mapping[str, str], app: str = "") -> ModalSettings:
    """The settings in `environment`, such as that of an emulator, and none of this process's own."""
    return ModalSettings(
        app=app,
        environment=environment.get("MODAL_ENVIRONMENT"),
        server_url=environment.get("MODAL_SERVER_URL"),
        token_id=environment.get("MODAL_TOKEN_ID"),
        token_secret=environment.get("MODAL_TOKEN_SECRET"),
    )


def is_loopback(url: str) -> bool:
    """Whether `url` is served by this machine."""
    return urlsplit(url).hostname in {"127.0.0.1", "::1", "localhost"}


def load_modal() -> Any:
    """The `modal` module, imported now and not before. Raises UsageError where it is not installed."""
    # Read once at import by the client, so it must be there first; the others are read at each use.
    os.environ.update(FORCED)
    try:
        return import_module("modal")
    except ModuleNotFoundError as error:
        if error.name != "modal":
            raise
        raise UsageError("running on Modal needs the modal package; install it with: pip install 'kevtui[modal]'") \
            from None  # fmt: skip


class ModalClient:
    """One authenticated connection, and what all operations share."""

    def __init__(self, settings: ModalSettings) -> None:
        self.settings = settings
        self.app_name = settings.app_name
        self.deadlines = settings.deadlines
        self._gate = asyncio.Semaphore(CONCURRENT)
        self._opening = asyncio.Lock()
        self._client: modal.Client | None = None
        self._identity: Identity | None = None

    @property
    def environment(self) -> str | None:
        return self.settings.environment

    async def open(self) -> "modal.Client":
        """The client, connected at first use. Raises AuthFailed without a token, UsageError without `modal`."""
        async with self._opening:
            if self._client is None:
                self._client = await self._connect()
            return self._client

    async def _connect(self) -> "modal.Client":
        modal = load_modal()
        with _process_environment(self.settings.variables()):
            config = import_module("modal.config").config
            token_id, token_secret = config.get("token_id"), config.get("token_secret")
            if not token_id or not token_secret:
                raise AuthFailed("no Modal token: run `modal token new`, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET")
            connect = modal.Client.from_credentials.aio(token_id, token_secret)
            return await self.ask(connect, "connect to Modal", deadline_s=self.deadlines.ping)

    async def ask(self, question: Awaitable[Answer], doing: str, *, deadline_s: float | None = None) -> Answer:
        """The answer to one question. Raises a RemoteError for whatever stood in its way."""
        try:
            return await self.bounded(question, doing, deadline_s=deadline_s)
        except RemoteError:
            raise
        except Exception as error:
            raise error_of(error, doing) from error

    async def bounded(
        self, question: Awaitable[Answer], doing: str, *, deadline_s: float | None = None, counted: bool = True
    ) -> Answer:
        """The answer to `question`, or its own exception, or Unavailable after `deadline_s`.

        One that is not `counted` has no part in the limit of questions under way.
        """
        deadline_s = self.deadlines.question if deadline_s is None else deadline_s
        async with self._gate if counted else nullcontext():
            task = asyncio.ensure_future(question)
            try:
                # Not wait_for: it raises the builtin TimeoutError, which from `get` means "not finished yet".
                done, _ = await asyncio.wait({task}, timeout=deadline_s)
            finally:
                if not task.done():
                    task.add_done_callback(_forget)
                    task.cancel()
                    # A stream whose next item was asked for cannot be closed before that question has ended.
                    await asyncio.wait({task}, timeout=CANCEL_GRACE_S)
        if not done:
            raise Unavailable(f"{doing}: no answer within {deadline_s:g} s")
        return task.result()

    async def ping(self) -> Identity:
        """Whose account this is. Answers, or fails, within seconds."""
        modal = load_modal()
        workspace = modal.Workspace.from_context(client=await self.open())
        await self.ask(workspace.hydrate.aio(), "ask Modal for the workspace", deadline_s=self.deadlines.ping)
        name = workspace.name or ""
        self._identity = Identity(
            workspace=name,
            environment=self.environment or "",
            server=self.settings.server_url or os.environ.get("MODAL_SERVER_URL", ""),
            simulated=name == SIMULATED_WORKSPACE,
        )
        return self._identity

    async def is_simulated(self) -> bool:
        """Whether nothing is billed here."""
        identity = self._identity or await self.ping()
        return identity.simulated

    async def command(self, *arguments: str) -> Any:
        """What `modal ARGUMENTS --json` answers. Raises NotDeployed where it says that something is not found."""
        output = await self.run_command(*arguments, "--json")
        try:
            return orjson.loads(output)
        except orjson.JSONDecodeError:
            said = shorten(visible_bytes(output), 80)
            raise Unavailable(f"modal {' '.join(arguments[:2])}: answered no JSON: {said}") from None

    async def run_command(self, *arguments: str) -> bytes:
        """What `modal ARGUMENTS` prints. Raises a RemoteError, after its last words, if it fails."""
        await self.open()  # the missing package or token, in one line and without starting a process
        doing = f"modal {' '.join(arguments[:2])}"
        run = self._run(*arguments)
        code, output, complaint = await self.ask(run, doing, deadline_s=self.deadlines.command)
        if code:
            raise complaint_of(complaint, doing)
        return output

    def command_line(self, *arguments: str) -> tuple[list[str], dict[str, str]]:
        """The command `modal ARGUMENTS` for this account, and the environment to run it in."""
        in_environment = ["--env", self.environment] if self.environment else []
        environment = (
            os.environ | self.settings.variables() | {"PYTHONUNBUFFERED": "1", "NO_COLOR": "1", "TERM": "dumb"}
        )
        return [sys.executable, "-m", "modal", *arguments, *in_environment], environment

    async def _run(self, *arguments: str) -> tuple[int, bytes, bytes]:
        command, environment = self.command_line(*arguments)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=environment
        )
        try:
            output, complaint = await process.communicate()
            return process.returncode or 0, output[:MAX_CLI_BYTES], complaint[-10_000:]
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            close: Any = getattr(client, "close", None) or client._close  # type: ignore[attr-defined]
            await close.aio()


def complaint_of(complaint: bytes, doing: str) -> RemoteError:
    """What the command line's last words mean; it has no codes of its own to tell failures apart."""
    lines = [line.strip(" │╭╮╰╯─|+-") for line in complaint.decode(errors="backslashreplace").splitlines()]
    text = " ".join(line for line in lines if line and line != "Error")
    said = shorten(visible_bytes(text.encode()), 300) or "failed without a word"
    message, lowered = f"{doing}: {said}", text.lower()
    if "token" in lowered or "unauthenticated" in lowered or "permission" in lowered:
        return AuthFailed(message)
    if "not found" in lowered or "no function" in lowered or "could not find" in lowered:
        return NotDeployed(message)

    if any(word in lowered for word in (*RATE_WORDS, *SPEND_WORDS, "exhausted")):
        return exhausted(said, None, doing)
    return Unavailable(message)


@contextmanager
def _process_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """`variables` in the process environment for the block: the client has no other way to be told its server."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if name in FORCED or name == DIRECT:
                continue  # read at each use, not only while connecting
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _forget(task: "asyncio.Future[Any]") -> None:
    # What a question says after its deadline interests nobody; unread, asyncio would print it.
    if not task.cancelled():
        task.exception()
