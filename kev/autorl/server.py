"""The grading server: the routes that an agent reaches, and what stands before them.

POST /submit              {"model_path", "gpu"?, "wait"?}: the entry, the best one and how many there are
GET  /submissions/N       an entry, or that it waits
POST /choose              {"submission_id"}: what the final is graded on
GET  /time                the run's clock
GET  /health              what is graded, and whether it is
POST /set_baseline        {"score"}: refused, but under the looser rules

An answer that is an error is {"error", "code"}; `kev.autorl.rejection` has the codes. 401 is a wrong token, 400 also a
Host that is not this machine's.
"""

import asyncio
import hmac
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kev.autorl.grader import Grader
from kev.autorl.rejection import Rejected
from kev.autorl.run_clock import NOTICES
from kev.autorl.submissions import Submission
from kev.clock import Clock, SystemClock
from kev.errors import KevError
from kev.text import shorten, visible

MAX_BODY_BYTES = 64 * 1024
MOST_DIGITS = 9
log = logging.getLogger(__name__)
_LOOPBACK_NAMES = {"localhost", "127.0.0.1", "[::1]", "::1"}
Handler = Callable[[Request], Awaitable[Response]]


def build_app(grader: Grader, *, token: str | None = None, clock: Clock | None = None) -> Starlette:
    """The application; the grader works while the server does."""
    routes = _Routes(grader, clock or SystemClock())

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await grader.start()
        try:
            yield
        finally:
            await grader.stop()

    return Starlette(
        routes=[
            Route("/submit", _answering(routes.submit), methods=["POST"]),
            Route("/submissions/{number}", _answering(routes.submission), methods=["GET"]),
            Route("/choose", _answering(routes.choose), methods=["POST"]),
            Route("/time", _answering(routes.time), methods=["GET"]),
            Route("/health", _answering(routes.health), methods=["GET"]),
            Route("/set_baseline", _answering(routes.set_baseline), methods=["POST"]),
        ],
        middleware=[Middleware(Gate, token=token)],
        lifespan=lifespan,
    )


def _answering(handler: Handler) -> Handler:
    """`handler`, whose failures are answers."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except Rejected as error:
            return JSONResponse({"error": str(error), "code": error.code}, error.status)
        except ClientDisconnect:
            return Response(status_code=400)
        except (KevError, OSError) as error:
            log.exception("a request failed")
            words = str(error) if isinstance(error, KevError) else f"the grader failed ({error.strerror})"
            return JSONResponse({"error": words, "code": "internal"}, 500)

    return answer


class _Routes:
    def __init__(self, grader: Grader, clock: Clock) -> None:
        self._grader = grader
        self._clock = clock

    async def submit(self, request: Request) -> Response:
        body = await _body(request)
        path = body.get("model_path")
        if not isinstance(path, str) or not path:
            raise Rejected("bad_path", "model_path: missing; a directory in the workspace")
        gpus, available = _gpus(body.get("gpu")), self._grader.run.gpus
        if gpus is None or not set(gpus) <= set(available):
            words = f"gpu: of {', '.join(available) or 'none'} that are available here"
            return JSONResponse({"error": words, "code": "bad_gpu", "available_gpus": list(available)}, 400)
        wait = body.get("wait", True)
        if not isinstance(wait, bool):
            raise Rejected("bad_request", "wait: true or false")
        submission = await self._grader.accept(path, gpus or available[:1])
        if not wait:
            return JSONResponse(self._said(submission), 202 if submission.grade is None else 200)
        # The grading belongs to the grader: it goes on when whoever asked hangs up.
        return JSONResponse(self._said(await self._grader.graded(submission)))

    async def submission(self, request: Request) -> Response:
        said = request.path_params["number"]
        # More digits than any submission has are not even made a number, which Python refuses above 4,300.
        number = int(said) if said.isascii() and said.isdecimal() and len(said) <= MOST_DIGITS else 0
        found = self._grader.ledger.submissions.get(number)
        if found is None:
            raise Rejected("unknown_submission", f"there is no submission {shorten(visible(said), 40)}")
        return JSONResponse(self._said(found))

    async def choose(self, request: Request) -> Response:
        number = (await _body(request)).get("submission_id")
        if type(number) is not int:
            raise Rejected("bad_request", "submission_id: the number of a submission")
        return JSONResponse({"chosen": (await self._grader.choose(number)).number})

    async def time(self, _: Request) -> Response:
        run_clock = self._grader.run_clock
        if run_clock is None:
            raise Rejected("not_allowed", "the run has not begun: its clock stands still")
        remaining, timeout = run_clock.remaining(), run_clock.timeout_s
        said = run_clock.meta().to_json()
        said |= {"now": int(self._clock.now().timestamp()), "remaining": int(0 if run_clock.is_over else remaining)}
        said["notices"] = [share for share in NOTICES if remaining <= timeout * share]
        return JSONResponse(said)

    async def health(self, _: Request) -> Response:
        run, ledger = self._grader.run, self._grader.ledger
        return JSONResponse(
            {
                "status": "healthy",
                "task": run.task,
                "workspace": str(run.workspace.directory),
                "available_gpus": list(run.gpus),
                "rules": run.rules,
                "evaluating": self._grader.current,
                "waiting": len(ledger.waiting),
            }
        )

    async def set_baseline(self, request: Request) -> Response:
        score = (await _body(request)).get("score")
        if isinstance(score, bool) or not isinstance(score, int | float):
            raise Rejected("bad_request", "score: a number")
        await self._grader.set_baseline(score)
        return JSONResponse({"baseline_score": self._grader.ledger.baseline_score, "status": "ok"})

    def _said(self, submission: Submission) -> dict[str, Any]:
        ledger = self._grader.ledger
        if submission.grade is None:
            return {"submission_id": submission.number, "status": "waiting"}
        best = ledger.best()
        said = submission.entry(ledger.baseline_score).to_json()
        said |= {"best": None if best is None else best.to_json(), "total_submissions": len(ledger.submissions)}
        if self._grader.run.rules == "strict":
            if submission.remarks:
                said["remarks"] = list(submission.remarks)
            said["submissions_left"] = max(0, self._grader.run.most_submissions - ledger.used())
        return said


class Gate:
    """Checks the token and the Host of a request. Without a token the address is all that protects the grader."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = token.encode() if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(Headers(scope=scope)) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, headers: Headers) -> Response | None:
        if self._token is None:
            host = headers.get("host", "")
            name = host if host.startswith("[") and host.endswith("]") else host.rpartition(":")[0] or host
            if name.casefold() in _LOOPBACK_NAMES:
                return None
            return JSONResponse({"error": "served to this machine only; name it localhost", "code": "bad_host"}, 400)
        scheme, _, given = headers.get("authorization", "").partition(" ")
        given = given if scheme.lower() == "bearer" else headers.get("x-grading-token", "")
        if hmac.compare_digest(given.strip().encode(), self._token):
            return None
        words = {"error": "the run's token is needed, as Authorization: Bearer TOKEN", "code": "wrong_token"}
        return JSONResponse(words, 401, headers={"www-authenticate": "Bearer"})


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object that a request holds. Raises Rejected."""
    too_large = Rejected("too_large", f"a body of more than {MAX_BODY_BYTES:,} bytes")
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced[:15]) > MAX_BODY_BYTES:
        raise too_large
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BODY_BYTES:
            raise too_large
    try:
        value = json.loads(bytes(data))
    except (ValueError, RecursionError):
        raise Rejected("bad_request", "the body is not JSON") from None
    if not isinstance(value, dict):
        raise Rejected("bad_request", "the body is an object")
    return value


def _gpus(value: Any) -> tuple[str, ...] | None:
    """What a request asks for: `"0"`, `0`, `"0,1"` or a list of those; None for what cannot be meant."""
    if value is None:
        return ()
    parts = value if isinstance(value, list) else str(value).split(",")
    if isinstance(value, bool | dict | float) or not all(type(part) in (str, int) for part in parts):
        return None
    return tuple(str(part).strip() for part in parts)


async def until_over(grader: Grader) -> None:
    """Return when the run's time is up. A clock that does not run yet is waited for."""
    while grader.run_clock is None or not grader.run_clock.is_over:
        left = 1.0 if grader.run_clock is None else grader.run_clock.remaining()
        await asyncio.sleep(min(1.0, max(0.01, left)))
