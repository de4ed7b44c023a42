"""What the control plane remembers: one model per kind of object, each written whole to the journal when it changes.

Times are Unix seconds of the plane's clock; 0 stands for "not yet". Messages are kept as their bytes.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from kev.emulator.wire import decode, pb


class Entity(BaseModel):
    """An object with an id. `kind` names its table in the journal."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
    kind: ClassVar[str]

    id: str


class App(Entity):
    """An app, deployed or ephemeral. `functions` and `classes` map names to ids."""

    kind: ClassVar[str] = "app"

    name: str
    environment: str
    state: int
    created: float
    deployed: float = 0
    stopped: float = 0
    version: int = 0
    functions: dict[str, str] = {}
    classes: dict[str, str] = {}
    tags: dict[str, str] = {}
    history: list[dict[str, Any]] = []

    @property
    def is_stopped(self) -> bool:
        return self.state == pb.APP_STATE_STOPPED

    @property
    def is_ephemeral(self) -> bool:
        return self.state not in (pb.APP_STATE_DEPLOYED, pb.APP_STATE_STOPPED)


class Function(Entity):
    """A function or class of functions as deployed; a variant made by `with_options` has a `base` and a `binding`."""

    kind: ClassVar[str] = "function"

    app_id: str
    name: str
    definition_bytes: bytes
    metadata_bytes: bytes
    parameters: bytes = b""
    base: str = ""
    binding: str = ""
    source: str = ""
    """Directory of its mounted files, relative to the root."""
    options_bytes: bytes | None = None
    """What a variant has other than its base."""

    @property
    def follows_base(self) -> bool:
        """Whether a variant can be deployed anew with its base; one of an earlier journal cannot."""
        return self.options_bytes is not None

    @property
    def definition(self) -> pb.Function:
        return decode(pb.Function, self.definition_bytes)

    @property
    def metadata(self) -> pb.FunctionHandleMetadata:
        return decode(pb.FunctionHandleMetadata, self.metadata_bytes)


class Input(Entity):
    """The arguments of one call, written once."""

    kind: ClassVar[str] = "input"

    item_bytes: bytes

    @property
    def item(self) -> pb.FunctionPutInputsItem:
        return decode(pb.FunctionPutInputsItem, self.item_bytes)


class Call(Entity):
    """One call of a function: where it stands, and its result once it has one."""

    kind: ClassVar[str] = "call"

    function_id: str
    input_id: str
    invocation: int
    idempotency_key: str = ""
    created: float
    started: float = 0
    finished: float = 0
    task_id: str = ""
    retries: int = 0
    crashes: int = 0
    cancelled: bool = False
    status: int = 0
    result_bytes: bytes = b""
    data_format: int = 1

    @property
    def is_done(self) -> bool:
        return self.status != 0

    @property
    def result(self) -> pb.GenericResult:
        return decode(pb.GenericResult, self.result_bytes)


class Task(Entity):
    """One container: when it ran, on what, and what that costs an hour by resource."""

    kind: ClassVar[str] = "task"

    app_id: str
    function_id: str
    enqueued: float
    started: float = 0
    finished: float = 0
    gpu_type: str = ""
    gpu_count: int = 0
    hourly: dict[str, Decimal] = {}
    ended_by: str = ""

    @property
    def is_live(self) -> bool:
        return not self.finished


class Attempt(Entity):
    """One delivery of a call to a container: with it, each line of output finds the call it belongs to."""

    kind: ClassVar[str] = "attempt"

    task_id: str
    call_id: str
    input_id: str
    started: float


class Volume(Entity):
    kind: ClassVar[str] = "volume"

    name: str
    environment: str
    version: int
    created: float


class Dictionary(Entity):
    kind: ClassVar[str] = "dictionary"

    name: str
    environment: str
    created: float


class DictionaryItem(Entity):
    """One item; its id is made of the dictionary's id and the key's bytes."""

    kind: ClassVar[str] = "item"

    dictionary_id: str
    key: bytes
    value: bytes

    @staticmethod
    def id_of(dictionary_id: str, key: bytes) -> str:
        return f"{dictionary_id}/{key.hex()}"


class Secret(Entity):
    kind: ClassVar[str] = "secret"

    name: str
    values: dict[str, str]


class Mount(Entity):
    """Files to be laid out in a container: path there to the hash of the content."""

    kind: ClassVar[str] = "mount"

    files: dict[str, str]
    name: str = ""


class Image(Entity):
    """An image definition; nothing is built, only its environment and file layers are honoured."""

    kind: ClassVar[str] = "image"

    definition_bytes: bytes

    @property
    def definition(self) -> pb.Image:
        return decode(pb.Image, self.definition_bytes)


class Notice(Entity):
    """A log line of the platform itself: why a container was ended."""

    kind: ClassVar[str] = "notice"

    app_id: str
    task_id: str
    function_id: str
    call_id: str = ""
    input_id: str = ""
    at: float
    text: str


KINDS: Mapping[str, type[Entity]] = {
    shape.kind: shape
    for shape in (
        App,
        Function,
        Input,
        Call,
        Task,
        Attempt,
        Volume,
        Dictionary,
        DictionaryItem,
        Secret,
        Mount,
        Image,
        Notice,
    )
}
