"""Apps: creation, publication, listing, stopping."""

from collections.abc import Callable
from typing import Any

from kev.clock import Clock
from kev.emulator.dispatch import Caller
from kev.emulator.entities import App
from kev.emulator.identity import DEFAULT_ENVIRONMENT
from kev.emulator.limits import Limits
from kev.emulator.store import Store
from kev.emulator.wire import message_of, new_id, not_found, pb


class Apps:
    """The app table. `stop_work` ends what runs of a stopped app, `retire` lets go of a former version's containers."""

    def __init__(
        self, store: Store, clock: Clock, limits: Limits, stop_work: Callable[[App], None],
        retire: Callable[[App], None],
    ) -> None:  # fmt: skip
        self._store = store
        self._clock = clock
        self._limits = limits
        self._stop_work = stop_work
        self._retire = retire
        self._heard: dict[str, float] = {}
        """When each app's client was last heard of, by the monotonic clock."""

    async def app_create(self, request: pb.AppCreateRequest, _caller: Caller) -> pb.AppCreateResponse:
        self._limits.admit("app_creation")
        app = App(
            id=new_id("ap"),
            name=request.description,
            environment=request.environment_name or DEFAULT_ENVIRONMENT,
            state=request.app_state or pb.APP_STATE_INITIALIZING,
            created=self._now(),
            tags=dict(request.tags),
        )
        self._store.save(app)
        return pb.AppCreateResponse(app_id=app.id, app_page_url=page(app), app_logs_url=page(app))

    async def app_get_or_create(self, request: pb.AppGetOrCreateRequest, _caller: Caller) -> pb.AppGetOrCreateResponse:
        environment = request.environment_name or DEFAULT_ENVIRONMENT
        app = self._store.deployed_app(request.app_name, environment)
        if app is None:
            if request.object_creation_type != pb.OBJECT_CREATION_TYPE_CREATE_IF_MISSING:
                raise not_found(f"App '{request.app_name}' not found in environment '{environment}'.")
            self._limits.admit("app_creation")
            app = App(
                id=new_id("ap"),
                name=request.app_name,
                environment=environment,
                state=pb.APP_STATE_DEPLOYED,
                created=self._now(),
                deployed=self._now(),
                version=1,
            )
            self._store.save(app)
        return pb.AppGetOrCreateResponse(app_id=app.id, handle_metadata=self._metadata(app))

    async def app_get_by_deployment_name(
        self, request: pb.AppGetByDeploymentNameRequest, _caller: Caller
    ) -> pb.AppGetByDeploymentNameResponse:
        environment = request.environment_name or DEFAULT_ENVIRONMENT
        app = self._store.deployed_app(request.name, environment)
        return pb.AppGetByDeploymentNameResponse(
            app_id=app.id if app else "",
            environment_name=environment,
            lifecycle=lifecycle(app) if app else None,
        )

    async def app_get_lifecycle(self, request: Any, _caller: Caller) -> pb.AppGetLifecycleResponse:
        return pb.AppGetLifecycleResponse(lifecycle=lifecycle(self._store.app(request.app_id)))

    async def app_get_info(self, request: Any, _caller: Caller) -> pb.AppGetInfoResponse:
        return pb.AppGetInfoResponse(info=self._metadata(self._store.app(request.app_id)))

    async def app_heartbeat(self, request: Any, _caller: Caller) -> None:
        self._heard[self._store.app(request.app_id).id] = self._clock.monotonic()

    def let_go(self, silence_s: float) -> None:
        """Take clients that were silent for so long for gone: what only lived with them ends."""
        now = self._clock.monotonic()
        for app in [app for app in self._store.apps.values() if app.is_ephemeral]:
            if now - self._heard.setdefault(app.id, now) > silence_s:
                self._disconnect(app)

    async def app_get_tags(self, request: Any, _caller: Caller) -> pb.AppGetTagsResponse:
        return pb.AppGetTagsResponse(tags=self._store.app(request.app_id).tags)

    async def app_set_tags(self, request: Any, _caller: Caller) -> None:
        app = self._store.app(request.app_id)
        app.tags = dict(request.tags)
        self._store.save(app)

    async def app_list(self, request: pb.AppListRequest, _caller: Caller) -> pb.AppListResponse:
        self._limits.admit("listing")
        environment = request.environment_name or DEFAULT_ENVIRONMENT
        listed = [app for app in self._store.apps.values() if app.environment == environment]
        return pb.AppListResponse(apps=[self._list_item(app) for app in listed])

    async def app_deployment_history(self, request: Any, _caller: Caller) -> pb.AppDeploymentHistoryResponse:
        app = self._store.app(request.app_id)
        return pb.AppDeploymentHistoryResponse(
            app_deployment_histories=[pb.AppDeploymentHistory(app_id=app.id, **entry) for entry in app.history],
            production_app_version=app.version,
        )

    async def app_publish(self, request: pb.AppPublishRequest, _caller: Caller) -> pb.AppPublishResponse:
        app = self._store.app(request.app_id)
        app.state = request.app_state or app.state
        app.name = request.name or app.name
        app.functions, app.classes = dict(request.function_ids), dict(request.class_ids)
        app.tags = {**app.tags, **request.tags}
        app.version += 1
        if app.state == pb.APP_STATE_DEPLOYED:
            app.deployed = self._now()
            app.history = [
                *app.history,
                {
                    "version": app.version,
                    "client_version": request.client_version,
                    "deployed_at": app.deployed,
                    "tag": request.deployment_tag,
                },
            ]
        self._store.save(app)
        self._retire(app)
        return pb.AppPublishResponse(url=page(app), deployed_at=self._now())

    async def app_stop(self, request: pb.AppStopRequest, _caller: Caller) -> None:
        self._stop(self._store.app(request.app_id))

    async def app_client_disconnect(self, request: Any, _caller: Caller) -> None:
        self._disconnect(self._store.app(request.app_id))

    def _disconnect(self, app: App) -> None:
        if app.state in (pb.APP_STATE_EPHEMERAL, pb.APP_STATE_INITIALIZING):
            self._stop(app)
        elif app.state == pb.APP_STATE_DETACHED:
            app.state = pb.APP_STATE_DETACHED_DISCONNECTED
            self._store.save(app)

    def _stop(self, app: App) -> None:
        if app.is_stopped:
            return
        app.state, app.stopped = pb.APP_STATE_STOPPED, self._now()
        self._store.save(app)
        self._stop_work(app)

    def _metadata(self, app: App) -> pb.AppHandleMetadata:
        return pb.AppHandleMetadata(
            description=app.name,
            app_id=app.id,
            environment_name=app.environment,
            lifecycle=lifecycle(app),
            functions=app.functions,
        )

    def _list_item(self, app: App) -> Any:
        return message_of(
            pb.AppListResponse.AppListItem,
            {"metadata": self._metadata(app)},
            app_id=app.id,
            description=app.name,
            name=app.name,
            state=app.state,
            created_at=app.created,
            stopped_at=app.stopped,
            n_running_tasks=sum(1 for task in self._store.tasks_of(app.id) if task.started and task.is_live),
        )

    def _now(self) -> float:
        return self._clock.now().timestamp()


def lifecycle(app: App) -> pb.AppLifecycle:
    return pb.AppLifecycle(
        app_state=app.state,  # type: ignore[arg-type]
        created_at=app.created,
        created_by="emulator",
        version=app.version,
        deployed_at=app.deployed,
        stopped_at=app.stopped,
    )


def page(app: App) -> str:
    """Where the provider would show the app; nothing listens there."""
    return f"http://emulated.invalid/apps/{app.id}"
