"""Endpoints over real sockets: our own server, and one that misbehaves as it is told."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import uvicorn
from linear_scorer import LinearScorer

from kev.predictors.distribution import answer_of_logits
from kev.serve import bind
from kev.serving.answers import answer_json
from kev.serving.app import Settings, build_app
from kev.serving.engine import Engine
from kev.serving.schema import parse_request

Misbehaviour = Callable[[int], tuple[int, dict[str, str], Any] | None]
"""Given the number of the call, from 1: status, headers and body to answer with, or None to answer it."""


@contextmanager
def served(scorer: LinearScorer, *, engine: Engine | None = None, **settings: Any) -> Iterator[str]:
    """Our server on a free port of this machine; yields its address."""
    listening = bind("127.0.0.1", 0)
    app = build_app(scorer, Settings("linear", **settings), engine)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


class Endpoint(ThreadingHTTPServer):
    """Answers as our server would, but for what `misbehave` says. `most_at_once` calls are served at the same time."""

    daemon_threads = True

    def __init__(self, scorer: LinearScorer, misbehave: Misbehaviour, *, most_at_once: int = 100) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.scorer = scorer
        self.misbehave = misbehave
        self.calls: list[dict[str, Any]] = []
        self.statuses: list[int] = []
        self.lock = threading.Lock()
        self.room = threading.Semaphore(most_at_once)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Endpoint

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["content-length"]))
        body = json.loads(data)
        with self.server.lock:
            self.server.calls.append({"body": body, "headers": dict(self.headers)})
            number = len(self.server.calls)
        if not self.server.room.acquire(blocking=False):
            self._send(529, {}, {"detail": "one at a time"})
            return
        try:
            answer = self.server.misbehave(number)
            if answer is None:
                answer = (200, {}, self._answer(data))
            self._send(*answer)
        finally:
            self.server.room.release()

    def do_GET(self) -> None:
        self._send(404, {}, {"detail": "not here"})

    def _answer(self, data: bytes) -> dict[str, Any]:
        asking, model = parse_request(data, "call")
        [logits] = self.server.scorer.score([self.server.scorer.encode(asking)])
        answers = {
            name: answer_json(asked, answer_of_logits(each).p)
            for (name, asked), each in zip(asking.questions.items(), logits, strict=True)
        }
        return {"model": model, "answers": answers, "usage": {"input_tokens": 1000, "output_tokens": 10}}

    def _send(self, status: int, headers: dict[str, str], body: Any) -> None:
        with self.server.lock:
            self.server.statuses.append(status)
        if status == 0:  # hang up without a word
            self.close_connection = True
            return
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *values: Any) -> None:
        """Say nothing."""


@contextmanager
def misbehaving(
    scorer: LinearScorer, misbehave: Misbehaviour = lambda _: None, *, most_at_once: int = 100
) -> Iterator[tuple[Endpoint, str]]:
    """An endpoint on a free port; yields it and its address."""
    endpoint = Endpoint(scorer, misbehave, most_at_once=most_at_once)
    thread = threading.Thread(target=endpoint.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield endpoint, f"http://127.0.0.1:{endpoint.server_address[1]}"
    finally:
        endpoint.shutdown()
        thread.join()
        endpoint.server_close()
