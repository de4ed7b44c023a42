"""The HTTP side: large arguments and results, file contents for mounts and volumes, and blocks of volume files.

Everything is content that a client or a container sends or fetches by a URL given to it over gRPC. The URLs hold a
secret, since any process of this machine can reach a loopback port.
"""

import asyncio
import base64
import hashlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from aiohttp import web

from kev.emulator.contents import ContentStore
from kev.emulator.dispatch import Caller
from kev.emulator.wire import new_id, pb

MAX_BODY = 4 * 1024**3
BLOCK = 8 * 1024 * 1024
"""Size of a block of a volume file: what the client asks for at a time."""


class Blobs:
    """Serves and takes content, and answers the blob procedures."""

    def __init__(self, blobs: ContentStore, contents: ContentStore, open_block: Callable[[str, str], Path]) -> None:
        self._blobs = blobs
        self._contents = contents
        self._open_block = open_block
        self._secret = secrets.token_urlsafe(24)
        self._runner: web.AppRunner | None = None
        self.base = ""

    async def start(self, host: str) -> None:
        app = web.Application(client_max_size=MAX_BODY)
        prefix = f"/{self._secret}"
        app.router.add_put(prefix + "/blob/{name}", self._put_blob)
        app.router.add_get(prefix + "/blob/{name}", self._get_blob)
        app.router.add_put(prefix + "/content/{digest}", self._put_content)
        app.router.add_get(prefix + "/volume/{volume}/{path:.+}", self._get_block)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.base = f"http://{host}:{port}{prefix}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def content_url(self, digest: str) -> str:
        return f"{self.base}/content/{digest}"

    def block_url(self, volume_id: str, quoted_path: str, start: int, length: int) -> str:
        return f"{self.base}/volume/{volume_id}/{quoted_path}?start={start}&len={length}"

    # Procedures.

    async def blob_create(self, _request: object, _caller: Caller) -> pb.BlobCreateResponse:
        name = new_id("bl")
        url = f"{self.base}/blob/{name}"
        return pb.BlobCreateResponse(blob_id=name, blob_ids=[name], upload_urls=pb.UploadUrlList(items=[url]))

    async def blob_get(self, request: pb.BlobGetRequest, _caller: Caller) -> pb.BlobGetResponse:
        return pb.BlobGetResponse(download_url=f"{self.base}/blob/{request.blob_id}")

    # Pages.

    async def _put_blob(self, request: web.Request) -> web.Response:
        data = await request.read()
        await asyncio.to_thread(self._blobs.put, request.match_info["name"], data)
        # The client compares the tag with its own MD5 and takes a difference for a damaged upload.
        tag = await asyncio.to_thread(hashlib.md5, data, usedforsecurity=False)
        return web.Response(headers={"ETag": f'"{tag.hexdigest()}"'})

    async def _get_blob(self, request: web.Request) -> web.StreamResponse:
        path = self._blobs.path(request.match_info["name"])
        return web.FileResponse(path) if path.exists() else web.Response(status=404)

    async def _put_content(self, request: web.Request) -> web.Response:
        data, digest = await request.read(), request.match_info["digest"]
        if (await asyncio.to_thread(hashlib.sha256, data)).hexdigest() != digest:
            return web.Response(status=400, text="the content does not have the digest of its name")
        await asyncio.to_thread(self._contents.put, digest, data)
        return web.Response(body=digest.encode())

    async def _get_block(self, request: web.Request) -> web.Response:
        try:
            path = self._open_block(request.match_info["volume"], request.match_info["path"])
            start, length = int(request.query["start"]), int(request.query["len"])
            data, digest = await asyncio.to_thread(_read_range, path, start, length)
        except (OSError, ValueError, KeyError):
            return web.Response(status=404)
        return web.Response(body=data, headers={"Repr-Digest": f"sha-256=:{digest}:"})


def _read_range(path: Path, start: int, length: int) -> tuple[bytes, str]:
    """Bytes of a file, at most a block of them, and their SHA-256 in base64."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.pread(descriptor, min(length, BLOCK), start)
    finally:
        os.close(descriptor)
    return data, base64.b64encode(hashlib.sha256(data).digest()).decode()
