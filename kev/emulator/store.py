"""The tables of the control plane, kept in memory and journalled."""

from collections.abc import Iterable
from typing import Any

from kev.emulator.entities import (
    App,
    Attempt,
    Call,
    Dictionary,
    DictionaryItem,
    Entity,
    Function,
    Image,
    Input,
    Mount,
    Notice,
    Secret,
    Task,
    Volume,
)
from kev.emulator.journal import Journal
from kev.emulator.wire import not_found, pb


class Store:
    """Every object by id. `save` is the only way to change one, so that nothing is forgotten by a restart."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.apps: dict[str, App] = {}
        self.functions: dict[str, Function] = {}
        self.inputs: dict[str, Input] = {}
        self.calls: dict[str, Call] = {}
        self.tasks: dict[str, Task] = {}
        self.attempts: dict[str, Attempt] = {}
        self.volumes: dict[str, Volume] = {}
        self.dictionaries: dict[str, Dictionary] = {}
        self.items: dict[str, DictionaryItem] = {}
        self.secrets: dict[str, Secret] = {}
        self.mounts: dict[str, Mount] = {}
        self.images: dict[str, Image] = {}
        self.notices: dict[str, Notice] = {}
        self._tables: dict[str, dict[str, Any]] = {
            App.kind: self.apps,
            Function.kind: self.functions,
            Input.kind: self.inputs,
            Call.kind: self.calls,
            Task.kind: self.tasks,
            Attempt.kind: self.attempts,
            Volume.kind: self.volumes,
            Dictionary.kind: self.dictionaries,
            DictionaryItem.kind: self.items,
            Secret.kind: self.secrets,
            Mount.kind: self.mounts,
            Image.kind: self.images,
            Notice.kind: self.notices,
        }

    def load(self) -> None:
        """Fill the tables from the journal, and rewrite it without what no longer holds."""
        for entity in self.journal.read():
            self._tables[entity.kind][entity.id] = entity
        self.journal.compact([entity for table in self._tables.values() for entity in table.values()])

    def save(self, entity: Entity) -> None:
        self._tables[entity.kind][entity.id] = entity
        self.journal.record(entity)

    def remove(self, entity: Entity) -> None:
        self._tables[entity.kind].pop(entity.id, None)
        self.journal.record_removal(entity)

    # Look-ups that answer NOT_FOUND in the provider's way.

    def app(self, app_id: str) -> App:
        if (app := self.apps.get(app_id)) is None:
            raise not_found(f"App with ID '{app_id}' not found.")
        return app

    def function(self, function_id: str) -> Function:
        if (function := self.functions.get(function_id)) is None:
            raise not_found(f"Function with ID '{function_id}' not found.")
        return function

    def call(self, call_id: str) -> Call:
        if (call := self.calls.get(call_id)) is None:
            raise not_found(f"FunctionCall '{call_id}' not found.")
        return call

    def task(self, task_id: str) -> Task:
        if (task := self.tasks.get(task_id)) is None:
            raise not_found(f"Container '{task_id}' not found.")
        return task

    def volume(self, volume_id: str) -> Volume:
        if (volume := self.volumes.get(volume_id)) is None:
            raise not_found(f"Volume '{volume_id}' not found.")
        return volume

    def deployed_app(self, name: str, environment: str) -> App | None:
        for app in self.apps.values():
            if (app.name, app.environment, app.state) == (name, environment, pb.APP_STATE_DEPLOYED):
                return app
        return None

    def tasks_of(self, app_id: str) -> Iterable[Task]:
        return [task for task in self.tasks.values() if task.app_id == app_id]

    def calls_of(self, function_ids: set[str]) -> list[Call]:
        return [call for call in self.calls.values() if call.function_id in function_ids]
