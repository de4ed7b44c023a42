"""The app that the contract is checked with: small functions on a CPU, one for each way in which a call can end.

It imports nothing of kev, since it also runs where kev is not installed.
"""

import os
import time
from pathlib import Path
from typing import Any

import modal

app = modal.App("kev-contract")
volume = modal.Volume.from_name("kev-contract", create_if_missing=True, version=2)

MOUNT = "/contract"
VOLUME = Path(os.environ.get("KEV_VOLUME_KEV_CONTRACT", MOUNT))
"""Where the volume is; an emulator on this machine cannot mount anything at `/` and says where it put it."""


@app.function()
def echo(payload: dict[str, Any]) -> dict[str, Any]:
    print(f"echo {payload.get('say', '')}", flush=True)
    return payload


@app.function()
def fail(payload: dict[str, Any]) -> None:
    raise ValueError(f"failed as asked: {payload.get('say', '')}")


@app.function()
def fail_with_timeout_error(_payload: dict[str, Any]) -> None:
    raise TimeoutError("raised by remote code")


class OnlyHere(Exception):
    """A class that no caller can import."""


@app.function()
def fail_with_own_class(_payload: dict[str, Any]) -> None:
    raise OnlyHere("known to remote code only")


@app.function(timeout=1)
def outlive(_payload: dict[str, Any]) -> None:
    """Runs past its own timeout."""
    time.sleep(60)


@app.function(timeout=300)
def linger(payload: dict[str, Any]) -> dict[str, Any]:
    """Says that it runs, and waits for its end."""
    print("lingering", flush=True)
    time.sleep(float(payload.get("seconds", 60)))
    return {"lingered": True}


@app.function(timeout=300)
def stubborn(payload: dict[str, Any]) -> None:
    """Swallows whatever would stop it."""
    print("stubborn", flush=True)
    end = time.monotonic() + float(payload.get("seconds", 60))
    while time.monotonic() < end:
        try:
            time.sleep(0.2)
        except BaseException as error:
            print(f"swallowed {type(error).__name__}", flush=True)


@app.function()
def long_text(payload: dict[str, Any]) -> dict[str, Any]:
    """A result too long for one message."""
    return {"text": "x" * int(payload["length"])}


@app.function(image=modal.Image.debian_slim().workdir("/kev-contract"))
def tell_place(_payload: dict[str, Any]) -> dict[str, Any]:
    return {"place": str(Path.cwd())}


@app.function()
def not_json(_payload: dict[str, Any]) -> Any:
    return {"set": [b"bytes"]}


@app.function()
def write_log(payload: dict[str, Any]) -> None:
    """Writes the given pieces to standard output, as they are."""
    for piece in payload["pieces"]:
        os.write(1, piece.encode(errors="surrogatepass"))


@app.function(volumes={MOUNT: volume}, timeout=120)
def write_files(payload: dict[str, Any]) -> dict[str, Any]:
    """Writes `files` (path to text), as if `age_s` seconds ago, and commits."""
    for name, text in payload["files"].items():
        path = VOLUME / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        moment = time.time() - payload.get("age_s", 0)
        os.utime(path, (moment, moment))
    volume.commit()
    return {"written": len(payload["files"])}


@app.function(volumes={MOUNT: volume}, timeout=120)
def crash_once(payload: dict[str, Any]) -> dict[str, Any]:
    """Kills its own container at the first attempt, and tells how many it took."""
    marker = VOLUME / f"crashed-{payload['run_id']}"
    volume.reload()
    if not marker.exists():
        marker.write_text("once")
        volume.commit()
        os._exit(137)
    return {"attempts": 2}
