"""Looking functions up, and making variants of them."""

import hashlib
from typing import Any

from kev.emulator.deploy import function_data
from kev.emulator.dispatch import Caller
from kev.emulator.entities import App
from kev.emulator.identity import DEFAULT_ENVIRONMENT
from kev.emulator.prices import check_priced
from kev.emulator.scheduler import Scheduler
from kev.emulator.store import Store
from kev.emulator.variants import variant_of
from kev.emulator.wire import new_id, not_found, pb


class Functions:
    """Answers what a client asks about functions before it calls them."""

    def __init__(self, store: Store, scheduler: Scheduler) -> None:
        self._store = store
        self._scheduler = scheduler

    async def function_get(self, request: pb.FunctionGetRequest, _caller: Caller) -> pb.FunctionGetResponse:
        app = self._deployed(request.app_name, request.environment_name)
        if (function_id := app.functions.get(request.object_tag)) is None:
            raise not_found(f"Function '{request.object_tag}' not found in app '{app.name}'.")
        function = self._store.function(function_id)
        return pb.FunctionGetResponse(
            function_id=function.id, handle_metadata=function.metadata, function=function_data(function.definition)
        )

    async def function_get_by_id(self, request: Any, _caller: Caller) -> pb.FunctionGetByIdResponse:
        function = self._store.function(request.function_id)
        return pb.FunctionGetByIdResponse(
            handle_metadata=function.metadata, function=function_data(function.definition)
        )

    async def class_get(self, request: pb.ClassGetRequest, _caller: Caller) -> pb.ClassGetResponse:
        app = self._deployed(request.app_name, request.environment_name)
        if (class_id := app.classes.get(request.object_tag)) is None:
            raise not_found(f"Class '{request.object_tag}' not found in app '{app.name}'.")
        return pb.ClassGetResponse(class_id=class_id, handle_metadata=pb.ClassHandleMetadata())

    async def function_bind_params(self, request: Any, _caller: Caller) -> pb.FunctionBindParamsResponse:
        """The variant of a function under other options or class parameters; the same ones give the same variant."""
        base, options = self._store.function(request.function_id), request.function_options
        key = hashlib.sha256(
            b"\0".join((base.id.encode(), request.serialized_params, options.SerializeToString(deterministic=True)))
        ).hexdigest()
        known = (each for each in self._store.functions.values() if each.binding == key and each.follows_base)
        function = next(known, None)
        if function is None:
            function = variant_of(base, new_id("fu"), key, request.serialized_params, options)
            check_priced(function.definition)
            self._store.save(function)
        return pb.FunctionBindParamsResponse(bound_function_id=function.id, handle_metadata=function.metadata)

    async def function_get_scheduling_params(
        self, request: Any, _caller: Caller
    ) -> pb.FunctionGetSchedulingParamsResponse:
        self._store.function(request.function_id)
        return pb.FunctionGetSchedulingParamsResponse()

    async def function_update_scheduling_params(
        self, request: Any, _caller: Caller
    ) -> pb.FunctionUpdateSchedulingParamsResponse:
        self._store.function(request.function_id)
        return pb.FunctionUpdateSchedulingParamsResponse()

    async def function_get_current_stats(self, request: Any, _caller: Caller) -> pb.FunctionStats:
        function = self._store.function(request.function_id)
        containers = self._scheduler.containers_of(function.id)
        return pb.FunctionStats(
            backlog=self._scheduler.queues.backlog(function.id),
            num_total_tasks=len(containers),
            num_running_inputs=sum(len(each.calls) for each in containers),
        )

    def _deployed(self, name: str, environment: str) -> App:
        environment = environment or DEFAULT_ENVIRONMENT
        if (app := self._store.deployed_app(name, environment)) is None:
            raise not_found(f"App '{name}' not found in environment '{environment}'.")
        return app
