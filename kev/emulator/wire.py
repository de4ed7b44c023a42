"""Everything taken from the generated messages and the gRPC library, so that no other module depends on their form.

The message types are those of the installed `modal` package: the emulator speaks whatever version the client speaks.
"""

import re
import secrets
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakSet

import grpclib.const
from google.protobuf.empty_pb2 import Empty
from google.protobuf.timestamp_pb2 import Timestamp
from grpclib import GRPCError, Status
from grpclib.protocol import H2Protocol
from grpclib.server import Server, Stream
from modal._utils.grpc_utils import custom_detail_codec
from modal_proto import api_grpc
from modal_proto import api_pb2 as pb

__all__ = [
    "INPUT_KERNEL_OOM_KILL",
    "KERNEL_OOM_KILL",
    "CallCounts",
    "GRPCError",
    "LoopbackServer",
    "Method",
    "Status",
    "Stream",
    "decode",
    "invalid",
    "message_of",
    "methods",
    "new_id",
    "not_found",
    "pb",
    "seconds_of",
    "throttled",
    "timestamp",
]

# What came in the course of 1.6, and what stands in for it where the client is older: such a client knows a container
# that ran out of memory as an internal failure, and never asks for counts of calls.
KERNEL_OOM_KILL: int = getattr(
    pb.GenericResult, "GENERIC_STATUS_KERNEL_OOM_KILL", pb.GenericResult.GENERIC_STATUS_INTERNAL_FAILURE
)
INPUT_KERNEL_OOM_KILL: int = getattr(
    pb, "FUNCTION_CALL_INPUT_STATUS_KERNEL_OOM_KILL", pb.FUNCTION_CALL_INPUT_STATUS_INTERNAL_FAILURE
)
CallCounts: Any = getattr(pb, "FunctionCallCountResponse", None)

AnyMessage = TypeVar("AnyMessage")

ID_ALPHABET = string.ascii_letters + string.digits
ID_LENGTH = 22


@dataclass(frozen=True, slots=True)
class Method:
    """One remote procedure: its name, where it lives, and the types that travel."""

    name: str
    path: str
    cardinality: grpclib.const.Cardinality
    request: Any
    reply: Any

    @property
    def handler_name(self) -> str:
        """`VolumeGetFile2` is answered by a coroutine named `volume_get_file2`."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.name).lower()

    @property
    def streams_reply(self) -> bool:
        return bool(self.cardinality.server_streaming)

    def empty_reply(self) -> Any:
        return Empty() if self.reply is Empty else self.reply()

    def handle_with(self, handler: Callable[[Any], Any]) -> grpclib.const.Handler:
        return grpclib.const.Handler(handler, self.cardinality, self.request, self.reply)


def methods() -> list[Method]:
    """Every procedure that the installed client can call."""
    base: Any = api_grpc.ModalClientBase
    names = type("Names", (base,), dict.fromkeys(base.__abstractmethods__, lambda _self, _stream: None))
    table = names().__mapping__()
    return [
        Method(path.rpartition("/")[2], path, handler.cardinality, handler.request_type, handler.reply_type)
        for path, handler in table.items()
    ]


class LoopbackServer(Server):
    """A gRPC server whose errors can carry the client's own retry instructions, and whose connections end with it.

    grpclib's own goes on answering on connections that are open when it is closed: a client would stay with a stopped
    emulator although a new one serves the same port.
    """

    def __init__(self, services: list[Any]) -> None:
        super().__init__(services, status_details_codec=custom_detail_codec)
        self._protocols: WeakSet[H2Protocol] = WeakSet()

    def _protocol_factory(self) -> H2Protocol:
        protocol = super()._protocol_factory()
        self._protocols.add(protocol)
        return protocol

    @property
    def port(self) -> int:
        """The port it listens on, once started."""
        sockets = self._server.sockets  # type: ignore[union-attr]
        return int(sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Cancel what is being answered, and hang up."""
        self.close()
        await self.wait_closed()
        for protocol in list(self._protocols):
            if hasattr(protocol, "processor"):
                protocol.processor.close("the emulator stopped")


def new_id(prefix: str) -> str:
    """A fresh object id of the provider's form; long enough that nobody guesses one."""
    return f"{prefix}-" + "".join(secrets.choice(ID_ALPHABET) for _ in range(ID_LENGTH))


def timestamp(seconds: float) -> Any:
    """`seconds` since 1970 as a message."""
    stamp = Timestamp()
    stamp.FromNanoseconds(int(seconds * 1e9))
    return stamp


def seconds_of(stamp: Any) -> float:
    """Seconds since 1970 of a timestamp message."""
    return float(stamp.ToNanoseconds()) / 1e9


def message_of(shape: Any, later: dict[str, Any], **fields: Any) -> Any:
    """A message of `fields` and of those of `later` that the client's version has: no older one could read them."""
    known = shape.DESCRIPTOR.fields_by_name
    return shape(**fields, **{name: value for name, value in later.items() if name in known})


def decode(shape: type[AnyMessage], data: bytes) -> AnyMessage:
    """The message of type `shape` that was serialised to `data`."""
    message = shape()
    message.ParseFromString(data)  # type: ignore[attr-defined]
    return message


def not_found(what: str) -> GRPCError:
    return GRPCError(Status.NOT_FOUND, what)


def invalid(what: str) -> GRPCError:
    return GRPCError(Status.INVALID_ARGUMENT, what)


def throttled(message: str, retry_after_s: float | None) -> GRPCError:
    """RESOURCE_EXHAUSTED: "come back in so many seconds" with a hint, "no more of this" without."""
    hint = [pb.RPCRetryPolicy(retry_after_secs=retry_after_s)] if retry_after_s is not None else None
    return GRPCError(Status.RESOURCE_EXHAUSTED, message, hint)
