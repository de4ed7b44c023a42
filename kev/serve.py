"""Serve a checkpoint over HTTP: `POST /v1/systemone`.

    python -m kev.serve --run runs/x/00-trial-0/checkpoint
    KEV_API_KEY=... python -m kev.serve --run CKPT --host 0.0.0.0

It listens on this machine only; wider only with a token in KEV_API_KEY, which callers send as `Authorization: Bearer`.
There is no TLS: put a proxy in front of whatever leaves this machine.
"""

import argparse
import ipaddress
import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kev.checkpoint import HEAD
from kev.console import run, say_aside
from kev.errors import KevError, Refused, UsageError
from kev.predictors.local import Scorer
from kev.text import visible

TOKEN_VARIABLE = "KEV_API_KEY"
LEAST_TOKEN = 16
"""Characters; a shorter one can be guessed over a network."""


class AddressTaken(KevError):
    """The address cannot be listened on."""


def check_exposure(host: str, token: str | None) -> None:
    """Raise Refused for an address beyond this machine without a token that could not be guessed."""
    if token is not None and len(token) < LEAST_TOKEN:
        raise Refused(f"{TOKEN_VARIABLE} has {len(token)} characters; a token has at least {LEAST_TOKEN}")
    if token is None and not is_loopback(host):
        raise Refused(f"--host {host} is reached from other machines; set {TOKEN_VARIABLE} to serve there")


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own, and reached from nowhere else."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises AddressTaken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
        listening.listen(128)  # from here on callers wait for the model instead of being turned away
    except OSError as error:
        listening.close()
        raise AddressTaken(
            f"{host}:{port}: {(error.strerror or 'cannot be listened on').lower()}; try --port 0"
        ) from None
    return listening


def serve(scorer: Scorer, settings: Any, listening: socket.socket) -> None:
    """Serve until interrupted or terminated."""
    import uvicorn

    from kev.serving.app import build_app

    config = uvicorn.Config(
        build_app(scorer, settings), log_level="warning", access_log=False, timeout_graceful_shutdown=30
    )
    uvicorn.Server(config).run(sockets=[listening])


def release_date(checkpoint: Path) -> str | None:
    """The day a checkpoint was written, in UTC; None where its time is one that archives set, in 1970 or 1980."""
    written = datetime.fromtimestamp((checkpoint / HEAD).stat().st_mtime, UTC)
    return written.date().isoformat() if written.year >= 2000 else None


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns 0 after a clean stop, 1 for a failure in one line."""
    parser = argparse.ArgumentParser(
        prog="python -m kev.serve", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", required=True, metavar="CHECKPOINT", help="a directory, or a Hub id[@revision]")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, default=8008, help="the port; 0 takes a free one (8008)")
    parser.add_argument("--device", choices=("cpu", "mps", "cuda"), help="where to compute (the best there is)")
    parser.add_argument("--dtype", choices=("fp32", "bf16", "fp16"), help="what to compute in (as it was trained)")
    parser.add_argument("--temperature", type=float, help="serve at this temperature instead of the checkpoint's")
    parser.add_argument(
        "--date-facts", action="store_true", help="add a note to each state: how far apart its dates are"
    )
    given = parser.parse_args(arguments)
    if given.temperature is not None and not 0 < given.temperature < float("inf"):
        parser.error("--temperature is a number above 0")
    return run(lambda: _serve(given))


def _serve(given: argparse.Namespace) -> int:
    token = os.environ.get(TOKEN_VARIABLE) or None
    check_exposure(given.host, token)
    try:
        from kev.serving.app import Settings
    except ImportError:
        raise UsageError("serving needs starlette and uvicorn: `pip install 'kevtui[train,serve]'`") from None
    listening = bind(given.host, given.port)
    try:
        from kev.predictors.checkpoint import CheckpointScorer

        scorer = CheckpointScorer(
            given.run, device=given.device, dtype=given.dtype, temperature=given.temperature, serving=True
        )
        for remark in scorer.remarks:
            say_aside(f"!!! {remark}")
        settings = Settings(
            given.run, token, date_facts=given.date_facts, max_state_tokens=scorer.max_state,
            release_date=release_date(scorer.directory),
        )  # fmt: skip
        address, port = listening.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        print(f"serving {visible(given.run)} at T = {scorer.temperature:g} on http://{shown}:{port}", flush=True)
        serve(scorer, settings, listening)
    finally:
        listening.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
