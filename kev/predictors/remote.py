"""A System One endpoint: `POST <base>/v1/systemone`, one request a call.

A call that the endpoint has no room for is made again; one that it refuses becomes a refusal; everything else ends
the read, which can be continued. The token goes only to the endpoint that was named: redirects are not followed.
"""

import json
import re
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kev.data.record import Asked
from kev.errors import KevError, UsageError
from kev.predictors.distribution import BadDistribution, answer_of
from kev.predictors.pace import Pace
from kev.predictors.prediction import Answer, Outcome, Prediction, Refusal, Request
from kev.predictors.purse import Purse
from kev.predictors.retries import BUSY, REFUSED, RetryPolicy, is_worth_retrying, parse_retry_after
from kev.text import shorten, visible

if TYPE_CHECKING:
    import httpx

TIMEOUT = 120.0
"""Seconds for one call."""

MAX_ANSWER_BYTES = 8 * 1024 * 1024
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class EndpointFailed(KevError):
    """An endpoint gave no answer that a read could go on with."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to ask, for which model, and with what token."""

    base_url: str
    model: str = "kev-latest"
    token: str | None = None
    concurrency: int = 1

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"--remote {self.base_url!r}: an endpoint is http://host[:port] or https://host")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise UsageError("--remote: give the address alone; a token belongs in KEV_REMOTE_API_KEY")
        if self.token is not None and not re.fullmatch(r"[!-~]+", self.token):
            raise UsageError("KEV_REMOTE_API_KEY: a token is printable ASCII without blanks")
        if self.concurrency < 1:
            raise UsageError("--remote-concurrency is at least 1")

    def url(self, path: str) -> str:
        return self.base_url.rstrip("/") + path

    @property
    def is_loopback(self) -> bool:
        return urlsplit(self.base_url).hostname in LOOPBACK


class RemotePredictor:
    """Asks an endpoint. `predict` may be called from as many threads as `concurrency` says."""

    batch = 1

    def __init__(self, endpoint: Endpoint, purse: Purse, policy: RetryPolicy | None = None) -> None:
        self.endpoint = endpoint
        self.concurrency = endpoint.concurrency
        self._purse = purse
        self._policy = policy or RetryPolicy()
        self._pace = Pace(endpoint.concurrency)
        self._stopped = threading.Event()
        self._client = _client(endpoint)
        self._served_model: str | None = None
        self._card = self._read_card()

    def identity(self) -> dict[str, Any]:
        return {
            "remote": self.endpoint.base_url,
            "requested_model": self.endpoint.model,
            "card": {key: self._card.get(key) for key in ("name", "run", "base", "temperature", "dtype")},
        }

    def describe(self) -> dict[str, Any]:
        return {
            "run": None,
            "environment": None,
            "calibration_applied": None,
            "remote": {
                "base_url": self.endpoint.base_url,
                "requested_model": self.endpoint.model,
                "served_model": self._served_model,
                "concurrency": self.endpoint.concurrency,
                "served_run": self._card.get("run"),
                "served_temperature": self._card.get("temperature"),
            },
        }

    def predict(self, requests: Sequence[Request]) -> list[Outcome]:
        return [self._ask(request) for request in requests]

    def stop(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        """End the connections."""
        self._stopped.set()
        self._client.close()

    def _ask(self, request: Request) -> Outcome:
        body = {**request.body(), "model": self.endpoint.model}
        data = json.dumps(body, ensure_ascii=False).encode(errors="backslashreplace")
        spent, tries = 0.0, 0
        while True:
            tries += 1
            began = time.monotonic()
            answered = self._call(request, data)
            if isinstance(answered, Prediction | Refusal):
                return answered
            reason, retry_after = answered
            wait = self._policy.wait(tries, retry_after)
            spent += time.monotonic() - began
            if spent + wait > self._policy.total:
                raise EndpointFailed(
                    f"{request.name}: {reason}, {tries} tries in {spent:.0f} s; the next would pass "
                    f"{self._policy.total:.0f} s of retries. Repeat the command to go on from here"
                )
            spent += wait
            if self._stopped.wait(wait):
                raise EndpointFailed(f"{request.name}: {reason}; stopped while waiting for another try")

    def _call(self, request: Request, data: bytes) -> Outcome | tuple[str, float | None]:
        """One try: an outcome, or why there is none yet and what Retry-After asked for."""
        import httpx

        with self._pace.turn():
            reserved = self._purse.reserve(len(data))
            began = time.perf_counter()
            try:
                status, headers, answer = self._post(data)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                self._purse.release(reserved, retried=True)
                return f"no connection ({type(error).__name__})", None
            except httpx.TransportError as error:
                self._purse.lose(reserved, len(data))
                return f"the connection broke ({type(error).__name__})", None
            except httpx.HTTPError as error:  # an answer that does not unpack
                self._purse.lose(reserved, len(data))
                raise EndpointFailed(
                    f"{request.name}: an answer that cannot be read ({type(error).__name__})"
                ) from None
            except BaseException:
                self._purse.lose(reserved, len(data))
                raise
            elapsed = (time.perf_counter() - began) * 1000
            if status == 200:
                self._pace.note_served()
                return self._parse(request, answer, elapsed, reserved, len(data))
            return self._not_served(request, status, headers, answer, reserved, len(data))

    def _not_served(
        self, request: Request, status: int, headers: Mapping[str, str], answer: bytes, reserved: int, size: int
    ) -> Outcome | tuple[str, float | None]:
        words = _words(answer)
        if status in REFUSED:
            self._purse.release(reserved, refused=status)
            return Refusal(f"HTTP {status}: {words}", status)
        if status in BUSY:
            self._pace.note_busy()
            self._purse.release(reserved, retried=True)
        elif status >= 500:
            self._purse.lose(reserved, size)
        else:
            self._purse.release(reserved, refused=status)
        if is_worth_retrying(status):
            return f"HTTP {status}", parse_retry_after(headers.get("retry-after"), datetime.now(UTC))
        hint = "; set KEV_REMOTE_API_KEY" if status in (401, 403) and self.endpoint.token is None else ""
        raise EndpointFailed(f"{request.name}: HTTP {status} from {self.endpoint.base_url}: {words}{hint}")

    def _post(self, data: bytes) -> tuple[int, Mapping[str, str], bytes]:
        headers = {"content-type": "application/json"}
        with self._client.stream("POST", self.endpoint.url("/v1/systemone"), content=data, headers=headers) as response:
            return response.status_code, response.headers, _limited(response)

    def _parse(self, request: Request, data: bytes, elapsed: float, reserved: int, size: int) -> Prediction:
        try:
            value = json.loads(data)
            usage = value.get("usage") or {}
            tokens = [usage.get(key) for key in ("input_tokens", "output_tokens")]
        except (ValueError, AttributeError, RecursionError):
            self._purse.settle(reserved, size, 0)
            raise EndpointFailed(f"{request.name}: {self.endpoint.base_url} answered with what is no answer") from None
        known = [each if type(each) is int and each >= 0 else None for each in tokens]
        self._purse.settle(reserved, size if known[0] is None else known[0], known[1] or 0)
        self._check_model(request, value.get("model"))
        try:
            answers = {name: read_answer(asked, value["answers"][name]) for name, asked in request.questions.items()}
        except (KeyError, TypeError, AttributeError) as error:
            raise EndpointFailed(f"{request.name}: an answer is missing or of another shape ({error!r:.80})") from None
        except BadDistribution as error:
            raise EndpointFailed(f"{request.name}: {error}") from None
        return Prediction(answers, latency_ms=elapsed, input_tokens=known[0], output_tokens=known[1])

    def _check_model(self, request: Request, model: Any) -> None:
        name = model if isinstance(model, str) else None
        if self._served_model is None:
            self._served_model = name
        elif name != self._served_model:
            raise EndpointFailed(
                f"{request.name}: the endpoint answered as {name!r} after {self._served_model!r}; one read, one model"
            )

    def _read_card(self) -> dict[str, Any]:
        """What the endpoint says of its model; {} where it says nothing. It is asked once, and need not answer."""
        import httpx

        with suppress(httpx.HTTPError, ValueError, EndpointFailed):
            with self._client.stream("GET", self.endpoint.url("/v1/models")) as response:
                data = _limited(response)
            value = json.loads(data) if response.status_code == 200 else {}
            cards = value.get("models") if isinstance(value, dict) else None
            for card in cards if isinstance(cards, list) else ():
                if isinstance(card, dict) and card.get("name") == self.endpoint.model:
                    return card
        return {}


def read_answer(asked: Asked, answer: Mapping[str, Any]) -> Answer:
    """The distribution in one answer of the API. Raises BadDistribution, KeyError or TypeError."""
    if asked.type == "noul":
        yes = answer["noul"]
        if isinstance(yes, bool) or not isinstance(yes, int | float):
            raise BadDistribution("noul is no number")
        return answer_of({"false": 1 - yes, "true": yes}, asked.keys)
    return answer_of(answer["probabilities"], asked.keys)


def _client(endpoint: Endpoint) -> "httpx.Client":
    try:
        import httpx
    except ImportError:
        raise UsageError("asking an endpoint needs httpx: install the extra, `pip install 'kevtui[remote]'`") from None
    headers = {"authorization": f"Bearer {endpoint.token}"} if endpoint.token else {}
    limits = httpx.Limits(max_connections=endpoint.concurrency, max_keepalive_connections=endpoint.concurrency)
    # A proxy of the environment is for the world outside; this machine is reached directly.
    return httpx.Client(headers=headers, timeout=TIMEOUT, limits=limits, trust_env=not endpoint.is_loopback)


def _limited(response: "httpx.Response") -> bytes:
    data = bytearray()
    for chunk in response.iter_bytes():
        data += chunk
        if len(data) > MAX_ANSWER_BYTES:
            raise EndpointFailed(f"an answer of more than {MAX_ANSWER_BYTES:,} bytes")
    return bytes(data)


def _words(answer: bytes) -> str:
    """What an error says, on one line."""
    with suppress(ValueError, RecursionError):
        value = json.loads(answer)
        if isinstance(value, dict):
            detail = value.get("detail", value.get("error", value))
            return shorten(visible(detail if isinstance(detail, str) else json.dumps(detail)), 300)
    return shorten(visible(answer.decode(errors="replace").strip()), 300) or "no reason given"
