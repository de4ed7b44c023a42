"""The emulator itself: its services put together, started and stopped."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kev import files
from kev.clock import Clock, SystemClock
from kev.emulator import aftermath
from kev.emulator.apps import Apps
from kev.emulator.blobs import Blobs
from kev.emulator.calls import Calls
from kev.emulator.containers import Containers
from kev.emulator.contents import ContentStore, private_directory
from kev.emulator.deploy import Deployment
from kev.emulator.dictionaries import Dictionaries
from kev.emulator.dispatch import Credentials, Dispatcher
from kev.emulator.faults import Faults
from kev.emulator.functions import Functions
from kev.emulator.identity import DEFAULT_ENVIRONMENT, Identity
from kev.emulator.journal import Journal
from kev.emulator.launch import Launcher
from kev.emulator.limits import Limits
from kev.emulator.logs import AppLog, LogBook, Logs
from kev.emulator.memory import over_limit
from kev.emulator.money import Billing, Meter, SpendCap
from kev.emulator.narrator import Narrator
from kev.emulator.plan import Event, FaultPlan, read_plan
from kev.emulator.running import Runner
from kev.emulator.scheduler import Scheduler
from kev.emulator.store import Store
from kev.emulator.termination import Terminator
from kev.emulator.timings import Timings
from kev.emulator.volume_views import VolumeViews
from kev.emulator.volumes import Volumes
from kev.emulator.waiting import Jobs
from kev.emulator.wire import LoopbackServer
from kev.errors import NotFound, UsageError

IDENTITY = "identity.json"

log = logging.getLogger(__name__)


class Emulator:
    """A Modal control plane on loopback.

        async with Emulator(root=tmp_path) as plane:
            ...  # run the stock client with plane.environment

    `root` holds everything: a new emulator on the same root continues where the last one stopped or was killed.
    `port` 0 takes the port of the last time if it is free, and any free one otherwise. `faults` is a plan or the path
    of one. Raises UsageError for a host that is not loopback, LockHeld if another emulator runs on `root`.
    """

    def __init__(
        self, root: Path, *, port: int = 0, host: str = "127.0.0.1", clock: Clock | None = None,
        faults: FaultPlan | Path | None = None, timings: Timings | None = None,
    ) -> None:  # fmt: skip
        check_loopback(host)
        self.root = root.resolve()
        self._host, self._port = host, port
        self.clock = clock or SystemClock()
        plan = read_plan(faults) if isinstance(faults, Path) else faults or FaultPlan()
        self.faults = Faults(plan)
        self.timings = timings or Timings()
        self._held = ExitStack()
        self._chores = Jobs()
        self._server: LoopbackServer | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # Life.

    async def start(self) -> None:
        private_directory(self.root)
        self._held.enter_context(files.locked(self.root / "lock"))
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        identity = self._read_identity()
        self.credentials = Credentials("ak-emulator", identity.get("token_secret") or "as-" + secrets.token_hex(16))
        self.store = Store(Journal(self.root / "journal.jsonl"))
        self.ended_at_start = aftermath.end_what_is_left(self.root / "tasks")
        self.store.load()
        self._build()
        self._take_up()
        await self.store.journal.sync()
        await self._blobs.start(self._host)
        server = LoopbackServer([self.dispatcher])
        self.port = await self._bind(server, self._port or identity.get("port", 0))
        self._server = server
        self._launcher.server_url = self.url
        files.write_atomic(
            self.root / IDENTITY,
            files.dump_json({"port": self.port, "token_secret": self.credentials.token_secret}),
        )
        self.scheduler.resume(self._open_calls)
        self._begin_chores()

    def _begin_chores(self) -> None:
        timings = self.timings
        self._chores.start(self._every(timings.memory_check, self._look_at_memory))
        self._chores.start(self._every(timings.client_gone / 4, lambda: self._apps.let_go(timings.client_gone)))
        if self.faults.plan.money.spend_cap_usd is not None:
            self._chores.start(self._every(timings.cap_check, self.scheduler.look_at_money))

    def _build(self) -> None:
        root, store, clock, plan = self.root, self.store, self.clock, self.faults.plan
        blobs, contents = ContentStore(root / "blobs"), ContentStore(root / "contents")
        self.limits = Limits(plan.limits, clock)
        self.meter = Meter(store, clock)
        cap = SpendCap(plan.money, self.meter)
        views = self._views = VolumeViews(store, root, plan.volumes.stale_s)
        views.recover()
        self.book = LogBook(AppLog)
        narrator = Narrator(store, self.book, clock)
        self.terminator = Terminator(self.timings, plan.container)
        self._launcher = Launcher(store, views, root, self.timings, plan.clock.container_skew_s)
        runner = Runner(store, clock, self._launcher, views, narrator, self.terminator, self.timings)
        self.scheduler = Scheduler(store, clock, self.limits, cap, runner, narrator, self.terminator, self.timings)
        self._blobs = Blobs(blobs, contents, views.pinned)
        self._apps = Apps(store, clock, self.limits, self.scheduler.stop_app, self.scheduler.retire)
        services: list[object] = [
            Identity(clock),
            self._apps,
            Deployment(store, root, contents, blobs),
            Functions(store, self.scheduler),
            Calls(store, clock, self.scheduler, cap, plan.results.retention_s),
            Containers(store, self.scheduler, self.terminator, self.limits, self.timings),
            Logs(store, self.book, clock, plan.logs),
            Volumes(store, clock, self.limits, self._blobs, contents, views),
            self._blobs,
            Dictionaries(store, clock),
            Billing(store, clock, self.meter),
        ]
        self.dispatcher = Dispatcher(
            services, self.credentials, self.scheduler.containers.__contains__, store.journal, self.faults
        )
        self._narrator = narrator

    def _take_up(self) -> None:
        """Bring the records in line with what really happened while nobody wrote them."""
        tasks = self.root / "tasks"
        for task in aftermath.settle_tasks(self.store, tasks, self.clock.now().timestamp()):
            self._launcher.clear(task)
        aftermath.remove_unknown(self.store, tasks)
        self._narrator.restore(tasks)
        self._open_calls = aftermath.open_calls(self.store)

    async def _bind(self, server: LoopbackServer, port: int) -> int:
        try:
            await server.start(self._host, port)
        except OSError as error:
            if self._port:
                raise UsageError(
                    f"port {port} of {self._host} cannot be had ({error.strerror}); name another"
                ) from None
            await server.start(self._host, 0)
        return server.port

    async def stop(self) -> None:
        """End every container, keep everything on disk, and let go of the root."""
        self._chores.cancel()
        if self._server is not None:
            await self.scheduler.close()
            await self._views.stop()
            await self._server.stop()
            self._server = None
        if hasattr(self, "_blobs"):
            await self._blobs.stop()
        if hasattr(self, "store"):
            await self.store.journal.sync()
        self._held.close()

    def disrupt(self, call_id: str, event: Event) -> bool:
        """Let `event` happen to the container that works on a call; False if none does. Raises for an unknown call."""
        return self.scheduler.disrupt(self.store.call(call_id), event)

    async def _every(self, seconds: float, action: Callable[[], Any]) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                done = action()
                if isinstance(done, Awaitable):
                    await done
                await self.store.journal.sync()
            except OSError:
                log.exception("a regular check failed and will be tried again")

    async def _look_at_memory(self) -> None:
        for container in await asyncio.to_thread(over_limit, list(self.scheduler.containers.values())):
            self.terminator.run_out_of_memory(container)

    # What a client needs.

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """All that the stock client and command line need."""
        return {
            "MODAL_SERVER_URL": self.url,
            "MODAL_TOKEN_ID": self.credentials.token_id,
            "MODAL_TOKEN_SECRET": self.credentials.token_secret,
            "MODAL_ENVIRONMENT": DEFAULT_ENVIRONMENT,
            # Results as CBOR: with pickle a remote TimeoutError looks like "not finished yet", and is unpickled here.
            "MODAL_PAYLOAD_FORMAT": "cbor",
            "MODAL_MAX_THROTTLE_WAIT": "10",
            # The client would send even loopback requests through a proxy.
            "MODAL_DISABLE_API_PROXY": "1",
        }

    def _read_identity(self) -> dict[str, Any]:
        try:
            value = files.read_json(self.root / IDENTITY)
        except NotFound:
            return {}
        return value if isinstance(value, dict) else {}


def check_loopback(host: str) -> None:
    """Raises UsageError unless `host` is a loopback address: whoever reaches the emulator can run code as its user."""
    try:
        # The client cannot read an IPv6 address in a URL.
        is_loopback = ip_address(host).is_loopback and ip_address(host).version == 4
    except ValueError:
        is_loopback = host == "localhost"
    if not is_loopback:
        raise UsageError(f"{host}: the emulator runs whatever it is sent, so it listens on loopback only (127.0.0.1)")
