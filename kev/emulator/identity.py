"""Who is asking: workspace, environments, tokens."""

import base64

import orjson

from kev.clock import Clock
from kev.emulator.dispatch import Caller
from kev.emulator.wire import pb

WORKSPACE = "emulated"
"""The name every client shows: nobody should take the emulator's figures for a bill."""

DEFAULT_ENVIRONMENT = "main"
IMAGE_BUILDER = "2025.06"
TOKEN_LIFETIME_S = 1200.0


class Identity:
    """Answers the questions a client asks about itself."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def client_hello(self, _request: object, _caller: Caller) -> pb.ClientHelloResponse:
        return pb.ClientHelloResponse()

    async def auth_token_get(self, _request: object, _caller: Caller) -> pb.AuthTokenGetResponse:
        claims = {"exp": self._clock.now().timestamp() + TOKEN_LIFETIME_S}
        parts = [base64.urlsafe_b64encode(orjson.dumps(part)).decode().rstrip("=") for part in ({}, claims)]
        return pb.AuthTokenGetResponse(token=".".join([*parts, "unsigned"]))

    async def token_info_get(self, _request: object, _caller: Caller) -> pb.TokenInfoGetResponse:
        return pb.TokenInfoGetResponse(
            token_id="emulated", workspace_name=WORKSPACE, user_identity=pb.UserIdentity(username=WORKSPACE)
        )

    async def workspace_name_lookup(self, _request: object, _caller: Caller) -> pb.WorkspaceNameLookupResponse:
        return pb.WorkspaceNameLookupResponse(workspace_name=WORKSPACE, username=WORKSPACE)

    async def environment_list(self, _request: object, _caller: Caller) -> pb.EnvironmentListResponse:
        item = pb.EnvironmentListItem(name=DEFAULT_ENVIRONMENT, default=True, environment_id=environment_id(""))
        return pb.EnvironmentListResponse(items=[item])

    async def environment_get_or_create(
        self, request: pb.EnvironmentGetOrCreateRequest, _caller: Caller
    ) -> pb.EnvironmentGetOrCreateResponse:
        name = request.deployment_name or DEFAULT_ENVIRONMENT
        return pb.EnvironmentGetOrCreateResponse(
            environment_id=environment_id(name),
            metadata=pb.EnvironmentMetadata(
                name=name, settings=pb.EnvironmentSettings(image_builder_version=IMAGE_BUILDER)
            ),
        )


def environment_id(name: str) -> str:
    return f"en-{name or DEFAULT_ENVIRONMENT}"
