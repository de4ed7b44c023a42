"""The routes of the API, and what stands before them: the token, the size of a body, the names this machine goes by.

POST /v1/systemone    a state and questions in, a distribution for each question out
GET  /v1/models       what is served
GET  /health          whether it is served

400  a Host that is not this machine's          401  no token, or another (paths under /v1)
413  a body over the limit                      422  a request that cannot be meant, or is too long
500  the model failed on it                     503  busy or stopping; Retry-After says when to ask again
"""

import asyncio
import hmac
import json
import re
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kev.predictors.date_facts import with_date_facts
from kev.predictors.distribution import BadDistribution, answer_of_logits
from kev.predictors.local import Encoded, Scorer, TooLong
from kev.predictors.prediction import Request as Asking
from kev.serving.answers import answer_json
from kev.serving.engine import Busy, Engine, ScoringFailed, Stopped
from kev.serving.schema import Unprocessable, parse_request

MAX_BODY_BYTES = 4 * 1024 * 1024
MODEL_NAMES = ("kev-latest", "jev-latest")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
_LOOPBACK_NAMES = {"localhost", "127.0.0.1", "[::1]", "::1"}


@dataclass(frozen=True, slots=True)
class Settings:
    """How a model is served. Without a token only callers that name this machine as themselves are answered."""

    run: str
    token: str | None = None
    max_body_bytes: int = MAX_BODY_BYTES
    date_facts: bool = False
    max_state_tokens: int | None = None
    release_date: str | None = None
    """An ISO date, which the API's own client asks for."""


class Refusal(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, detail: str, *, retry_after: int | None = None) -> None:
        self.status = status
        self.detail = detail
        self.retry_after = retry_after
        super().__init__(detail)


def build_app(scorer: Scorer, settings: Settings, engine: Engine | None = None) -> Starlette:
    """The application; its engine runs while the server does."""
    engine = engine or Engine(scorer)
    routes = _Routes(scorer, settings, engine)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        engine.start()
        try:
            yield
        finally:
            await asyncio.to_thread(engine.stop)

    return Starlette(
        routes=[
            Route("/v1/systemone", routes.answer, methods=["POST"]),
            Route("/v1/models", routes.models, methods=["GET"]),
            Route("/health", routes.health, methods=["GET"]),
        ],
        middleware=[Middleware(Gate, token=settings.token)],
        lifespan=lifespan,
    )


class _Routes:
    def __init__(self, scorer: Scorer, settings: Settings, engine: Engine) -> None:
        self._scorer = scorer
        self._settings = settings
        self._engine = engine

    async def answer(self, request: Request) -> Response:
        try:
            return JSONResponse(await self._answer(request))
        except Refusal as refusal:
            headers = {"retry-after": str(refusal.retry_after)} if refusal.retry_after is not None else None
            return JSONResponse({"detail": refusal.detail}, refusal.status, headers=headers)
        except ClientDisconnect:
            return Response(status_code=400)

    async def models(self, _: Request) -> Response:
        said = self._scorer.describe()
        environment = said.get("environment") or {}
        card = {
            "description": "Typed decisions: one state, any number of questions, a distribution for each.",
            "release_date": self._settings.release_date,
            "run": self._settings.run,
            "device": environment.get("device"),
            "backend": environment.get("backend"),
            "dtype": environment.get("dtype"),
            "temperature": self._scorer.temperature,
            "max_state_tokens": self._settings.max_state_tokens,
            "truncate_states": False,
            "batches": {
                "count": self._engine.batches,
                "requests": self._engine.requests,
                "queued": self._engine.waiting,
            },
        }
        return JSONResponse({"models": [{"name": name, **card} for name in MODEL_NAMES]})

    async def health(self, _: Request) -> Response:
        return JSONResponse({"status": "ready"})

    async def _answer(self, request: Request) -> dict[str, Any]:
        data = await self._body(request)
        asking, model, encoded = await asyncio.to_thread(self._encode, data)
        try:
            scored = await asyncio.wrap_future(self._engine.submit(encoded))
            found = [answer_of_logits(logits) for logits in scored.logits]
        except Busy:
            raise Refusal(503, "as many requests as may wait are waiting", retry_after=1) from None
        except Stopped:
            raise Refusal(503, "the server is stopping", retry_after=5) from None
        except (ScoringFailed, BadDistribution) as error:
            raise Refusal(500, f"the model failed on this request ({error})") from None
        answers = {
            name: answer_json(asked, answer.p)
            for (name, asked), answer in zip(asking.questions.items(), found, strict=True)
        }
        written = json.dumps(answers, ensure_ascii=False)
        return {
            "model": model,
            "answers": answers,
            "usage": {"input_tokens": encoded.tokens, "output_tokens": self._scorer.count_tokens(written)},
            "latency_ms": round(scored.latency_ms, 3),
        }

    async def _body(self, request: Request) -> bytes:
        limit = self._settings.max_body_bytes
        too_large = Refusal(413, f"a body of more than {limit:,} bytes")
        announced = request.headers.get("content-length", "")
        if announced.isdigit() and int(announced[:15]) > limit:
            raise too_large
        data = bytearray()
        async for chunk in request.stream():
            data += chunk
            if len(data) > limit:
                raise too_large
        return bytes(data)

    def _encode(self, data: bytes) -> tuple[Asking, str, Encoded]:
        try:
            asking, model = parse_request(data, "the request")
            if self._settings.date_facts:
                asking = Asking(asking.name, with_date_facts(asking.state), asking.questions)
            return asking, model, self._scorer.encode(asking)
        except (Unprocessable, TooLong) as error:
            raise Refusal(422, str(error)) from None


class Gate:
    """Checks the token and the Host of a request, and puts id and duration on every answer."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = token.encode() if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-typesafe-request-id", "")
        identifier = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        began = time.perf_counter()

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered = MutableHeaders(scope=message)
                answered["x-typesafe-request-id"] = identifier
                answered["server-timing"] = f"app;dur={(time.perf_counter() - began) * 1000:.1f}"
            await send(message)

        refusal = self._refusal(scope["path"], headers)
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refusal(self, path: str, headers: Headers) -> Response | None:
        if self._token is None:
            # Without a token the address is all that protects the model: a page in a browser must not reach it by
            # a name that was made to point here.
            host = headers.get("host", "")
            name = host if host.startswith("[") and host.endswith("]") else host.rpartition(":")[0] or host
            if name.casefold() not in _LOOPBACK_NAMES:
                return JSONResponse({"detail": "served to this machine only; name it localhost"}, 400)
            return None
        if not path.startswith("/v1"):
            return None
        scheme, _, found = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(found.strip().encode(), self._token):
            return None
        return JSONResponse({"detail": "a bearer token is needed"}, 401, headers={"www-authenticate": "Bearer"})
