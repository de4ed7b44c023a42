"""Deployment: images, mounts and secrets, and the functions made of them."""

import hashlib
from pathlib import Path
from typing import Any

from kev.emulator.contents import ContentStore, lay_out
from kev.emulator.dispatch import Caller
from kev.emulator.entities import Function, Image, Mount, Secret
from kev.emulator.identity import DEFAULT_ENVIRONMENT, IMAGE_BUILDER
from kev.emulator.images import image_files
from kev.emulator.prices import check_priced
from kev.emulator.store import Store
from kev.emulator.variants import redeployed
from kev.emulator.wire import invalid, new_id, not_found, pb

EMPTY_SHA = hashlib.sha256(b"").hexdigest()
MAX_RESULT_BYTES = 2 * 1024 * 1024
"""A larger result travels as a blob."""


class Deployment:
    """Takes what a deploy sends. Nothing is built: containers run in the emulator's own Python environment."""

    def __init__(self, store: Store, root: Path, contents: ContentStore, blobs: ContentStore) -> None:
        self._store = store
        self._root = root
        self._contents = contents
        self._blobs = blobs

    # Images, mounts, secrets.

    async def image_get_or_create(self, request: Any, _caller: Caller) -> pb.ImageGetOrCreateResponse:
        definition = request.image.SerializeToString(deterministic=True)
        image = Image(id="im-" + hashlib.sha256(definition).hexdigest()[:22], definition_bytes=definition)
        self._store.save(image)
        return pb.ImageGetOrCreateResponse(
            image_id=image.id,
            result=pb.GenericResult(status=pb.GenericResult.GENERIC_STATUS_SUCCESS),
            metadata=pb.ImageMetadata(image_builder_version=IMAGE_BUILDER),
        )

    async def mount_batched_check_existence(
        self, request: pb.MountBatchedCheckExistenceRequest, _caller: Caller
    ) -> pb.MountBatchedCheckExistenceResponse:
        missing = [digest for digest in request.sha256_hex_hashes if not self._contents.has(digest)]
        return pb.MountBatchedCheckExistenceResponse(missing_sha256_hex_hashes=missing)

    async def mount_put_file(self, request: pb.MountPutFileRequest, _caller: Caller) -> pb.MountPutFileResponse:
        digest = request.sha256_hex
        data: bytes | None = None
        match request.WhichOneof("data_oneof"):
            case "data":
                data = request.data
            case "data_blob_id":
                data = self._blobs.path(request.data_blob_id).read_bytes()
            case None if digest == EMPTY_SHA:
                data = b""
        if data is not None:
            if hashlib.sha256(data).hexdigest() != digest:
                raise invalid(f"file content does not have the digest {digest}")
            self._contents.put(digest, data)
        return pb.MountPutFileResponse(exists=self._contents.has(digest))

    async def mount_get_or_create(self, request: Any, _caller: Caller) -> pb.MountGetOrCreateResponse:
        name = request.deployment_name if request.namespace == pb.DEPLOYMENT_NAMESPACE_GLOBAL else ""
        mount = next((each for each in self._store.mounts.values() if name and each.name == name), None)
        if mount is None:
            mount = Mount(id=new_id("mo"), name=name, files={each.filename: each.sha256_hex for each in request.files})
            self._store.save(mount)
        return pb.MountGetOrCreateResponse(mount_id=mount.id, handle_metadata=pb.MountHandleMetadata())

    async def secret_get_or_create(self, request: Any, _caller: Caller) -> pb.SecretGetOrCreateResponse:
        name = request.deployment_name
        found = next((each for each in self._store.secrets.values() if name and each.name == name), None)
        creation = request.object_creation_type
        if found is None and creation == pb.OBJECT_CREATION_TYPE_UNSPECIFIED:
            environment = request.environment_name or DEFAULT_ENVIRONMENT
            raise not_found(f"Secret '{name}' not found in environment '{environment}'.")
        if found is None or creation == pb.OBJECT_CREATION_TYPE_CREATE_OVERWRITE_IF_EXISTS:
            found = Secret(id=found.id if found else new_id("st"), name=name, values=dict(request.env_dict))
            self._store.save(found)
        if missing := [key for key in request.required_keys if key not in found.values]:
            raise not_found(f"Secret '{name}' is missing key(s): {', '.join(missing)}")
        return pb.SecretGetOrCreateResponse(secret_id=found.id)

    # Functions and classes.

    async def function_precreate(self, request: Any, _caller: Caller) -> pb.FunctionPrecreateResponse:
        self._store.app(request.app_id)
        metadata = pb.FunctionHandleMetadata(
            function_name=request.function_name,
            function_type=request.function_type,
            app_id=request.app_id,
            function_schema=request.function_schema,
            supported_input_formats=request.supported_input_formats,
            supported_output_formats=request.supported_output_formats,
            definition_id=new_id("de"),
        )
        return pb.FunctionPrecreateResponse(
            function_id=request.existing_function_id or new_id("fu"), handle_metadata=metadata
        )

    async def function_create(self, request: Any, _caller: Caller) -> pb.FunctionCreateResponse:
        self._store.app(request.app_id)
        if request.HasField("function"):
            definition = request.function
        else:
            definition = request.function_data.ranked_functions[0].function
        check_priced(definition)
        function_id = request.existing_function_id or new_id("fu")
        metadata = handle_metadata(definition, request.app_id)
        function = Function(
            id=function_id,
            app_id=request.app_id,
            name=definition.function_name,
            definition_bytes=definition.SerializeToString(),
            metadata_bytes=metadata.SerializeToString(),
            source=f"sources/{self._lay_out(definition)}",
        )
        self._store.save(function)
        variants = [each for each in self._store.functions.values() if each.base == function_id and each.follows_base]
        for variant in variants:
            self._store.save(redeployed(variant, function))
        return pb.FunctionCreateResponse(
            function_id=function_id,
            handle_metadata=metadata,
            function=definition,
            function_data=function_data(definition),
        )

    async def class_create(self, request: Any, _caller: Caller) -> pb.ClassCreateResponse:
        return pb.ClassCreateResponse(
            class_id=request.existing_class_id or new_id("cs"), handle_metadata=pb.ClassHandleMetadata()
        )

    def _lay_out(self, definition: pb.Function) -> str:
        """Copy the function's mounted files into a directory named after them, once; its name is returned."""
        entries = image_files(self._store, definition.image_id)
        for mount_id in definition.mount_ids:
            if mount_id in self._store.mounts:
                entries.update(self._store.mounts[mount_id].files)
        listing = "\n".join(f"{digest} {name}" for name, digest in sorted(entries.items()))
        key = hashlib.sha256(listing.encode()).hexdigest()[:32]
        place = self._root / "sources" / key
        if place.exists():
            return key
        try:
            lay_out(place, {name: self._contents.path(digest) for name, digest in entries.items()})
        except ValueError as error:
            raise invalid(str(error)) from None
        return key


def handle_metadata(definition: pb.Function, app_id: str) -> pb.FunctionHandleMetadata:
    """What a client needs to know of a function before it calls it."""
    metadata = pb.FunctionHandleMetadata(
        function_name=definition.function_name,
        function_type=definition.function_type,
        app_id=app_id,
        function_schema=definition.function_schema,
        supported_input_formats=definition.supported_input_formats,
        supported_output_formats=definition.supported_output_formats,
        definition_id=new_id("de"),
        max_object_size_bytes=MAX_RESULT_BYTES,
    )
    for name, method in definition.method_definitions.items():
        metadata.method_handle_metadata[name].CopyFrom(
            pb.FunctionHandleMetadata(
                function_name=method.function_name,
                function_type=method.function_type,
                is_method=True,
                use_method_name=name,
                app_id=app_id,
                function_schema=method.function_schema,
                supported_input_formats=method.supported_input_formats,
                supported_output_formats=method.supported_output_formats,
            )
        )
    metadata.class_parameter_info.CopyFrom(definition.class_parameter_info)
    return metadata


def function_data(definition: pb.Function) -> pb.FunctionData:
    return pb.FunctionData(
        module_name=definition.module_name,
        function_name=definition.function_name,
        function_type=definition.function_type,
        timeout_secs=definition.timeout_secs,
        ranked_functions=[pb.FunctionData.RankedFunction(rank=0, function=definition)],
    )
