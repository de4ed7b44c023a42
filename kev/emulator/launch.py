"""Starting a container: its directory, its environment, and Modal's own entry point in a child process."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from kev.emulator.dispatch import TASK_HEADER
from kev.emulator.entities import App, Function, Task
from kev.emulator.images import DEFAULT_WORKDIR, image_environment, image_workdir
from kev.emulator.process import Output, Process
from kev.emulator.store import Store
from kev.emulator.timings import Timings
from kev.emulator.volume_views import VolumeViews
from kev.emulator.volumes import metadata as volume_metadata
from kev.emulator.wire import pb

ENTRY_POINT = "modal._container_entrypoint"

SOURCE_VARIABLE = "KEV_CONTAINER_ROOT"
"""Where a container finds, under their paths there, the files that a real one would have at `/`."""

SKEW_VARIABLE = "KEV_CLOCK_SKEW_S"
SKEW_DIRECTORY = Path(__file__).with_name("skewed_clock")

INHERITED = (
    "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SSL_CERT_FILE",
    "OMP_NUM_THREADS",
)  # fmt: skip
"""All that a container has of its host's environment: what else it needs must come by a Secret, as in reality."""


class Launcher:
    """Starts containers under the root directory."""

    def __init__(self, store: Store, views: VolumeViews, root: Path, timings: Timings, skew_s: float) -> None:
        self._store = store
        self._views = views
        self._root = root
        self._timings = timings
        self._skew_s = skew_s
        self.server_url = ""

    def directory(self, task: Task) -> Path:
        return self._root / "tasks" / task.id

    async def start(self, task: Task, function: Function, on_output: Callable[[Output], None]) -> Process:
        app = self._store.app(task.app_id)
        directory = self.directory(task)
        (directory / "home").mkdir(parents=True)
        arguments = directory / "arguments.pb"
        arguments.write_bytes(self._arguments(task, function, app).SerializeToString())
        volumes = await self._views.open(task, directory, list(function.definition.volume_mounts))
        environment = self._environment(task, function, app, arguments) | volumes
        workdir = image_workdir(self._store, function.definition.image_id)
        workplace = self._root / function.source / workdir.relative_to("/")
        workplace.mkdir(parents=True, exist_ok=True)
        return await Process.start(directory, [sys.executable, "-m", ENTRY_POINT], environment, workplace, on_output)

    def clear(self, task: Task) -> None:
        """Remove what a container that is gone no longer needs; its output and its end stay."""
        directory = self.directory(task)
        for name in ("home", "volumes"):
            shutil.rmtree(directory / name, ignore_errors=True)
        (directory / "arguments.pb").unlink(missing_ok=True)

    def _arguments(self, task: Task, function: Function, app: App) -> pb.ContainerArguments:
        return pb.ContainerArguments(
            task_id=task.id,
            function_id=function.id,
            app_id=app.id,
            function_def=function.definition,
            environment_name=app.environment,
            app_layout=layout(self._store, app),
            serialized_params=function.parameters,
        )

    def _environment(self, task: Task, function: Function, app: App, arguments: Path) -> dict[str, str]:
        source = self._root / function.source
        paths = [str(source / DEFAULT_WORKDIR.relative_to("/")), str(source / "pkg")]
        values = {name: os.environ[name] for name in INHERITED if name in os.environ}
        values |= image_environment(self._store, function.definition.image_id)
        for secret_id in function.definition.secret_ids:
            if secret_id in self._store.secrets:
                values |= self._store.secrets[secret_id].values
        if self._skew_s:
            paths.insert(0, str(SKEW_DIRECTORY))
            values[SKEW_VARIABLE] = str(self._skew_s)
        own = {
            "HOME": str(arguments.parent / "home"),
            "MODAL_SERVER_URL": self.server_url,
            "MODAL_IS_REMOTE": "1",
            "MODAL_TASK_ID": task.id,
            "MODAL_ENVIRONMENT": app.environment,
            "MODAL_IMAGE_ID": function.definition.image_id,
            "MODAL_CONTAINER_ARGUMENTS_PATH": str(arguments),
            "MODAL_OVERRIDE_HEADERS": f"{TASK_HEADER}:{task.id}",
            "MODAL_HEARTBEAT_INTERVAL": str(self._timings.heartbeat),
            "MODAL_DISABLE_API_PROXY": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTHONPATH": os.pathsep.join(paths + ([values["PYTHONPATH"]] if "PYTHONPATH" in values else [])),
            SOURCE_VARIABLE: str(source),
        }
        return values | own


def layout(store: Store, app: App) -> pb.AppLayout:
    """Everything that a container resolves before it can start: an id left out ends it with a KeyError."""
    objects: dict[str, pb.Object] = {}
    for class_id in app.classes.values():
        objects[class_id] = pb.Object(object_id=class_id, class_handle_metadata=pb.ClassHandleMetadata())
    functions = [store.functions[each] for each in app.functions.values() if each in store.functions]
    for function in functions:
        objects[function.id] = pb.Object(object_id=function.id, function_handle_metadata=function.metadata)
    for function in functions:
        for dependency in function.definition.object_dependencies:
            objects.setdefault(dependency.object_id, dependency_object(store, dependency.object_id))
    return pb.AppLayout(function_ids=app.functions, class_ids=app.classes, objects=list(objects.values()))


def dependency_object(store: Store, object_id: str) -> pb.Object:
    if object_id in store.volumes:
        return pb.Object(object_id=object_id, volume_metadata=volume_metadata(store.volumes[object_id]))
    return pb.Object(object_id=object_id)
