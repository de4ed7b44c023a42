"""Dict: a shared key-value store whose `put(..., skip_if_exists=True)` is an atomic claim.

Keys and values are opaque bytes, serialised by the client and never opened here.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from kev.clock import Clock
from kev.emulator.dispatch import Caller
from kev.emulator.entities import Dictionary, DictionaryItem
from kev.emulator.identity import DEFAULT_ENVIRONMENT
from kev.emulator.store import Store
from kev.emulator.wire import GRPCError, Status, new_id, not_found, pb


class Dictionaries:
    """Each request is one step of the event loop, so that of two racing claims exactly one is told `created`."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def dict_get_or_create(
        self, request: pb.DictGetOrCreateRequest, _caller: Caller
    ) -> pb.DictGetOrCreateResponse:
        environment = request.environment_name or DEFAULT_ENVIRONMENT
        found = self._named(request.deployment_name, environment)
        creation = request.object_creation_type
        if found and creation == pb.OBJECT_CREATION_TYPE_CREATE_FAIL_IF_EXISTS:
            raise GRPCError(Status.ALREADY_EXISTS, f"Dict '{request.deployment_name}' already exists.")
        if found is None:
            if creation == pb.OBJECT_CREATION_TYPE_UNSPECIFIED:
                raise not_found(f"Dict '{request.deployment_name}' not found in environment '{environment}'.")
            found = Dictionary(
                id=new_id("di"),
                name=request.deployment_name,
                environment=environment,
                created=self._clock.now().timestamp(),
            )
            self._store.save(found)
            for entry in request.data:
                self._put(found.id, entry.key, entry.value)
        return pb.DictGetOrCreateResponse(dict_id=found.id, metadata=metadata(found))

    async def dict_get_by_id(self, request: Any, _caller: Caller) -> pb.DictGetByIdResponse:
        found = self._dictionary(request.dict_id)
        return pb.DictGetByIdResponse(dict_id=found.id, metadata=metadata(found))

    async def dict_list(self, request: Any, _caller: Caller) -> pb.DictListResponse:
        environment = request.environment_name or DEFAULT_ENVIRONMENT
        listed = [each for each in self._store.dictionaries.values() if each.name and each.environment == environment]
        return pb.DictListResponse(
            dicts=[
                pb.DictListResponse.DictInfo(
                    name=each.name, created_at=each.created, dict_id=each.id, metadata=metadata(each)
                )
                for each in listed
            ],
            environment_name=environment,
        )

    async def dict_heartbeat(self, request: Any, _caller: Caller) -> None:
        self._dictionary(request.dict_id)

    async def dict_delete(self, request: Any, _caller: Caller) -> None:
        found = self._dictionary(request.dict_id)
        self._clear(found.id)
        self._store.remove(found)

    async def dict_update(self, request: pb.DictUpdateRequest, _caller: Caller) -> pb.DictUpdateResponse:
        dictionary = self._dictionary(request.dict_id)
        created = True
        for entry in request.updates:
            exists = DictionaryItem.id_of(dictionary.id, entry.key) in self._store.items
            if exists and request.if_not_exists:
                created = False
                continue
            self._put(dictionary.id, entry.key, entry.value)
        return pb.DictUpdateResponse(created=created)

    async def dict_get(self, request: pb.DictGetRequest, _caller: Caller) -> pb.DictGetResponse:
        item = self._item(request.dict_id, request.key)
        return pb.DictGetResponse(found=item is not None, value=item.value if item else b"")

    async def dict_contains(self, request: Any, _caller: Caller) -> pb.DictContainsResponse:
        return pb.DictContainsResponse(found=self._item(request.dict_id, request.key) is not None)

    async def dict_len(self, request: Any, _caller: Caller) -> pb.DictLenResponse:
        return pb.DictLenResponse(len=sum(1 for _ in self._items(request.dict_id)))

    async def dict_pop(self, request: pb.DictPopRequest, _caller: Caller) -> pb.DictPopResponse:
        item = self._item(request.dict_id, request.key)
        if item is None:
            return pb.DictPopResponse(found=False)
        self._store.remove(item)
        return pb.DictPopResponse(found=True, value=item.value)

    async def dict_clear(self, request: Any, _caller: Caller) -> None:
        self._clear(request.dict_id)

    async def dict_contents(self, request: pb.DictContentsRequest, _caller: Caller) -> AsyncIterator[pb.DictEntry]:
        for item in list(self._items(request.dict_id)):
            yield pb.DictEntry(key=item.key if request.keys else b"", value=item.value if request.values else b"")

    def _named(self, name: str, environment: str) -> Dictionary | None:
        for dictionary in self._store.dictionaries.values():
            if name and (dictionary.name, dictionary.environment) == (name, environment):
                return dictionary
        return None

    def _dictionary(self, dictionary_id: str) -> Dictionary:
        if (found := self._store.dictionaries.get(dictionary_id)) is None:
            raise not_found(f"Dict '{dictionary_id}' not found.")
        return found

    def _items(self, dictionary_id: str) -> Iterator[DictionaryItem]:
        self._dictionary(dictionary_id)
        return (item for item in self._store.items.values() if item.dictionary_id == dictionary_id)

    def _item(self, dictionary_id: str, key: bytes) -> DictionaryItem | None:
        return self._store.items.get(DictionaryItem.id_of(self._dictionary(dictionary_id).id, key))

    def _put(self, dictionary_id: str, key: bytes, value: bytes) -> None:
        item_id = DictionaryItem.id_of(dictionary_id, key)
        self._store.save(DictionaryItem(id=item_id, dictionary_id=dictionary_id, key=key, value=value))

    def _clear(self, dictionary_id: str) -> None:
        for item in list(self._items(dictionary_id)):
            self._store.remove(item)


def metadata(dictionary: Dictionary) -> pb.DictMetadata:
    return pb.DictMetadata(
        name=dictionary.name, creation_info=pb.CreationInfo(created_at=dictionary.created, created_by="emulator")
    )
